"""Error rates: how often intervals leave out the truth, and how often p-values are small without an effect."""
