"""Compensations for removed heads without training, one per file."""
