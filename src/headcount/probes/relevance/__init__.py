"""Relevance: the contribution of each neuron to a prediction, propagated back through a run of the model."""
