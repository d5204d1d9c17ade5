"""Pruning as one pipeline: choose heads, compensate for them, remove them, and fine-tune."""
