"""Saving and loading models, plain and pruned."""
