"""One file per rule of relevance propagation."""
