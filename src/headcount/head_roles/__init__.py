"""Roles of heads: positional, syntactic, rare tokens and more. One file per role."""
