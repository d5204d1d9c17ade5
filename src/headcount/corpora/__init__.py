"""Text that models are run on: parallel text and treebanks."""
