"""Where a training run can be followed, one file a service."""
