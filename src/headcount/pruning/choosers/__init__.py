"""Ways to choose the heads that stay, one file each."""
