"""A dataset's images certified or predicted under a model, into a log."""
