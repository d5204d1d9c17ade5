"""What a batch is, its loss, and how good a model is at it. One file is one task, besides the contract in `task.py`."""
