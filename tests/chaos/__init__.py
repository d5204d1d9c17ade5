"""Fault injection: commands are killed, lose disk space or write access, or run twice; results must not change.

Run it with `make chaos` or `PYTHONPATH=tests python -m chaos --seed 0`.
"""
