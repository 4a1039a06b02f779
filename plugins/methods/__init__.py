"""Training objectives, one file a paper."""
