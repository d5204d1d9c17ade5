"""Ways to compensate for removed heads without training: one per file, besides the contract and shared parts."""
