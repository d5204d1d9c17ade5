"""Faults on purpose: every command is interrupted, starved of disk, locked out and doubled, and must end as if not.

PYTHONPATH=tests python -m chaos --seed 0 runs it; `make chaos` does.
"""
