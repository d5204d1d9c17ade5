"""Ways to train the weights that are left, one file each."""
