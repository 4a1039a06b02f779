"""Layouts of other people's checkpoints, one file a layout."""
