"""Figures computed from logs."""
