"""Claims of the papers: one file each, with the statistic that decides it. Knows records, not models."""
