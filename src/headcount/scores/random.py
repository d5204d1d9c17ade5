"""random: random scores, the control that every score must beat."""

from __future__ import annotations

import numpy as np
from torch import nn

from headcount.record import Signature
from headcount.scores.score import Scores, scores
from headcount.sites.fingerprint import model_seed, weight_hash
from headcount.sites.locate import locate
from headcount.tasks.task import Task


def random(model: nn.Module, task: Task | None = None, *, seed: int = 0) -> Scores:  # noqa: ARG001
    """Uniform numbers between 0 and 1; other ones for every model, so that models do not share an order of heads."""
    heads, weights = locate(model).heads, weight_hash(model)
    values = np.random.default_rng(model_seed(weights, seed)).uniform(size=len(heads))
    return scores(heads, values, Signature(weights=weights, seed=seed, arguments={"score": "random"}), normalize=False)


SCORE = random
