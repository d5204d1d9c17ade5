"""One number per head: how much it is worth. One file is one score, besides the contract in `score.py`."""
