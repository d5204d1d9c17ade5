"""Studies: one experiment per file, which returns a Record."""
