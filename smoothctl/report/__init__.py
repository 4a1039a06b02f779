"""Measures, tables and plots from certification and prediction logs."""
