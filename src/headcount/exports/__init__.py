"""Exports: models, plain and pruned, in the formats of other runtimes."""
