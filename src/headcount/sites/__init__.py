"""Where heads are: from a live model to its sites."""
