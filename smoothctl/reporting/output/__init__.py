"""Figures as tables, plots, documents and a page."""
