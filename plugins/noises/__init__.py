"""Noises, with the radius that each proves."""
