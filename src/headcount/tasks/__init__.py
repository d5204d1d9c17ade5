"""Tasks: batches, loss and metrics. One file is one task; `task.py` has the contract."""
