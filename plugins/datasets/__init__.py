"""Labelled images, one file a dataset."""
