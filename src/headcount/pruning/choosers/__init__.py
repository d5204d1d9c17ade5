"""Choosers of heads, one file each."""
