"""Probes attached to a live model inside a block: masks, gates, taps and relevance."""
