"""Training: the run that a model belongs to, by its name."""

from __future__ import annotations

import re
from math import inf

_PART = re.compile(r"(?P<run>.*?)/?(?:epochs/|checkpoint-)(?P<number>\d+(?:\.\d+)?)/*")


def training_of(model: str) -> tuple[str, float]:
    """The run, and the number of the epoch or checkpoint; infinity for the model that the run ended with.

    Models of one run are alike: they are no draws from models that differ by their seeds.
    """
    part = _PART.fullmatch(model)
    return (part["run"], float(part["number"])) if part else (model.rstrip("/"), inf)
