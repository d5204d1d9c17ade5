"""Vitals: measures of whether the encoder's attention stays trainable during training.

If the logits of a layer have too large a spread, its softmax is saturated: every query attends to one key, almost no
gradient flows back, and its heads stop learning.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor, nn

from headcount.probes.taps import tapped
from headcount.sites.running import evaluating
from headcount.sites.site import Site
from headcount.tasks.task import Task

# Largest healthy spread. The best two of ten logits with standard deviation s lie about 0.54 s apart: at 8, the second
# weight is e^-4.3 = 1.3 % of the first, and softmax passes on at most that share of a gradient.
LARGEST_SPREAD = 8.0
_SENTENCES = 32


def vitals(model: nn.Module, task: Task) -> dict[str, dict[str, float]]:
    """For each encoder layer: spread of the attention logits, attention on the end token, confidence.

    spread: standard deviation over keys, in nats, averaged over queries and heads.
    end: share of the attention that the last token of the sentence gets.
    confidence: largest weight, averaged over queries and heads.
    """
    sums: defaultdict[str, list[Tensor]] = defaultdict(list)

    def add(site: Site, values_3: Tensor) -> None:
        if site.kind == "encoder":
            sums[site.name].append(values_3)

    rows = range(min(_SENTENCES, len(task.lengths)))
    with evaluating(model), tapped(model, _summary, sink=add):
        for row in rows:  # one sentence at a time: no padding
            task.nll(model, task.batch(np.array([row])))
    names = ("spread", "end", "confidence")
    return {
        layer: dict(zip(names, torch.stack(values).mean(0).tolist(), strict=True)) for layer, values in sums.items()
    }


def saturated(layers: dict[str, dict[str, float]]) -> list[str]:
    """Layers whose attention is saturated."""
    return [layer for layer, values in layers.items() if values["spread"] > LARGEST_SPREAD]


def _summary(attention_BHQK: Tensor) -> Tensor:
    logits = attention_BHQK.clamp_min(torch.finfo(attention_BHQK.dtype).tiny).log()  # up to a constant of each query
    spread = logits.std(-1).mean() if attention_BHQK.shape[-1] > 1 else logits.new_zeros(())
    return torch.stack([spread, attention_BHQK[..., -1].mean(), attention_BHQK.amax(-1).mean()])
