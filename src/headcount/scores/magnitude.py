"""magnitude: size of each head's output weights. Needs no data; a control for scores that do."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError
from headcount.record import Signature
from headcount.scores.score import Scores, scores
from headcount.sites.devices import stored_weight
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.projection import wrapping
from headcount.sites.site import Site
from headcount.tasks.task import Task


def magnitude(model: nn.Module, task: Task | None = None, *, normalize: bool = False) -> Scores:  # noqa: ARG001
    """The L2 norm of each head's columns of the output projection."""
    sites = locate(model)
    values = np.concatenate([_norms(site) for site in sites if site.num_heads])
    signature = Signature(weights=weight_hash(model), arguments={"score": "magnitude", "normalize": normalize})
    return scores(sites.heads, values, signature, normalize=normalize)


@torch.no_grad()
def _norms(site: Site) -> np.ndarray:
    if adapter := wrapping(site.output):
        raise UsageError(f"The magnitude of {site.name} is not that of one weight: its output projection is {adapter}.")
    weight = stored_weight(site.output)
    columns_OHD = (weight.T if isinstance(site.output, Conv1D) else weight).double().unflatten(-1, (-1, site.head_dim))
    return columns_OHD.square().sum((0, 2)).sqrt().cpu().numpy()


SCORE = magnitude
