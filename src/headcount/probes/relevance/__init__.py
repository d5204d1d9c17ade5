"""Relevance: how much of a prediction comes from each neuron, traced back through a run of the model."""
