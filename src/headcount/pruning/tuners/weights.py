"""weights: fine-tuning, from the weights that are there."""

from __future__ import annotations

from headcount.pruning.tuner import Tuner

TUNER = Tuner()
