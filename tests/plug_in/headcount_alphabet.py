"""alphabet: heads in the order of their names, the first worth most. An example of a score in a package of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.record import Signature
from headcount.scores.score import Scores, scores
from headcount.sites.locate import locate


def alphabet(model: Any, task: Any = None) -> Scores:
    heads = locate(model).heads
    values = np.arange(len(heads), 0, -1, dtype=float)
    return scores(heads, values, Signature(arguments={"score": "alphabet"}), normalize=False)


SCORE = alphabet
