"""Stopping rules of certification, one a file, with their mathematics beside them."""
