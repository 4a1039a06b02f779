"""Base classifiers: built, loaded from model files and third-party checkpoints, composed."""
