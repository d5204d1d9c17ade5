"""Whole ways of pruning: from a model to a smaller, saved one and its record."""
