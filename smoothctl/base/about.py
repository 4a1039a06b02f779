"""What this package is."""

__version__ = "0.1.0"
