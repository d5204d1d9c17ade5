"""weights: fine-tuning of the current weights."""

from __future__ import annotations

from headcount.pruning.tuner import Tuner

TUNER = Tuner()
