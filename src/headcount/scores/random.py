"""random: random scores, the control that every score must beat."""

from __future__ import annotations

import numpy as np
from torch import nn

from headcount.record import Signature
from headcount.scores.score import Scores, scores
from headcount.sites.locate import locate
from headcount.tasks.task import Task


def random(model: nn.Module, task: Task | None = None, *, seed: int = 0) -> Scores:  # noqa: ARG001
    """Uniform numbers between 0 and 1."""
    heads = locate(model).heads
    values = np.random.default_rng(seed).uniform(size=len(heads))
    return scores(heads, values, Signature(seed=seed, arguments={"score": "random"}), normalize=False)


SCORE = random
