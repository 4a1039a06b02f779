"""Randomized smoothing: noise, votes, bounds, stopping rules, certificates and predictions."""
