"""What compensation costs: BERT-base shape, half of the heads gone: passes over the calibration data, and solves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import headcount as hc
from benchmarks.models import HEADS, LAYERS, bert_base, tokens
from benchmarks.row import Row
from headcount.statistics import median_interval
from headcount.timing import interleave

EXAMPLES, LENGTH, BATCH, REPEATS = 128, 128, 16, 3


def nll(model: nn.Module, batch: Any) -> Tensor:
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    return nn.functional.cross_entropy(logits, batch["labels"], reduction="none")


def rows(examples: int = EXAMPLES, repeats: int = REPEATS) -> Iterator[Row]:
    model, every = bert_base(), tokens(examples, LENGTH)
    labels = torch.arange(examples) % 2
    batches = [
        {
            **{name: value[start : start + BATCH] for name, value in every.items()},
            "labels": labels[start : start + BATCH],
        }
        for start in range(0, examples, BATCH)
    ]
    task, sites = hc.task.of(batches, nll=nll), hc.locate(model)
    mask = sites.mask(keep=random.Random(0).sample(sites.heads, k=LAYERS * HEADS // 2))

    def forward() -> None:
        with torch.no_grad():
            for batch in batches:
                nll(model, batch)

    work = {
        "forward": forward,
        "runs and sums": lambda: hc.compensate(model, mask, task, "none"),
        "lstsq": lambda: hc.compensate(model, mask, task, "lstsq"),
    }
    times = interleave(work, repeats=repeats, warmup=0)
    seconds = {name: times.median(name) for name in times.seconds}
    solves = times.seconds["lstsq"] - times.seconds["runs and sums"]
    size = f"BERT-base {examples} x {LENGTH}, half of the heads"
    yield Row(
        f"compensation without its solves, {size}, in forward passes",
        times.ratio("runs and sums", "forward"),
        {name: seconds[name] for name in ("runs and sums", "forward")},
        at_most=4.0,
        note=f"the solves of {LAYERS} sites take {float(median_interval(solves).value):.1f} s besides",
    )
