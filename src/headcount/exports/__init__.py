"""Export of models, unpruned or pruned, to the formats of other runtimes."""
