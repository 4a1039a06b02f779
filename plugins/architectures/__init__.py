"""Networks, one file a family."""
