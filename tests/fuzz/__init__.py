"""Mutated input for every reader: `python -m fuzz` from the folder of the tests."""
