"""Counts in sentences."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """1, model -> 1 model; 2, model -> 2 models."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
