"""Pruning is one pipeline: choose heads, compensate for them, remove them, tune what is left."""
