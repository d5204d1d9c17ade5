"""What the gradient score costs: BERT-base shape, one batch, against forward and backward with parameter gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import headcount as hc
from benchmarks.models import bert_base, tokens
from benchmarks.row import Row
from headcount.timing import interleave

BATCH, LENGTH = 8, 128


def nll(model: nn.Module, batch: Any) -> Tensor:
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    return nn.functional.cross_entropy(model(**inputs).logits, batch["labels"], reduction="none")


def rows() -> Iterator[Row]:
    model = bert_base()
    batch = {**tokens(BATCH, LENGTH), "labels": torch.arange(BATCH) % 2}
    task = hc.task.of([batch], nll=nll)

    def training_step() -> None:
        nll(model, batch).sum().backward()
        model.zero_grad()

    def score() -> None:
        hc.score("gradient", model, task)

    times = interleave({"gradient score": score, "forward and backward": training_step}, repeats=20)
    seconds = {name: times.median(name) for name in times.seconds}
    ratio = times.ratio("gradient score", "forward and backward")
    yield Row(f"gradient score, BERT-base {BATCH} x {LENGTH}, against a training step", ratio, seconds, at_most=0.72)
