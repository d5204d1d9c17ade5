"""Tuners of the remaining weights, one file each."""
