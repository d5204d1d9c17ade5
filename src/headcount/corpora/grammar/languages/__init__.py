"""Invented languages: one file each. They differ in order and in how much their words change."""
