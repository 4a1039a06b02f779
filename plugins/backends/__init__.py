"""Ways to evaluate a network, one a file."""
