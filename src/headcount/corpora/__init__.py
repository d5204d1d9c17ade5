"""Corpora: plain, labelled and parallel text, and treebanks."""
