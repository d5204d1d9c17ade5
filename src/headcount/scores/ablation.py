"""ablation: loss of quality when one head is masked (Michel et al. 2019, section 3.2), with paired statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.metrics import ACCURACY, Metric
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.record.results.ablate import Effect
from headcount.scores.pieces import shelf
from headcount.scores.score import Scores
from headcount.scores.variants import Outcome, Variant, measure
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.site import HeadNames
from headcount.statistics import counted, holm, resamples_for
from headcount.tasks.task import Task


def effects(metric: Metric, measured: Outcome, *, alpha: float = 0.01, seed: int = 0) -> list[Effect]:
    """Paired statistics of every variant, by `Metric.compare`; NaN for a variant whose site did not run."""
    ran_V = ~np.isnan(measured.variants).all((1, 2))
    ran = iter(_effects(metric, measured.base, measured.variants[ran_V], alpha, seed) if ran_V.any() else ())
    nan = float("nan")
    none = Effect(value=nan, difference=nan, low=nan, high=nan, p=nan, corrected=nan, examples=0)
    return [next(ran) if variant_ran else none for variant_ran in ran_V]


def _effects(metric: Metric, base_NC: np.ndarray, variants_VNC: np.ndarray, alpha: float, seed: int) -> list[Effect]:
    resamples = 2000 if metric is ACCURACY else resamples_for(len(variants_VNC), alpha)
    compared = metric.compare(base_NC, variants_VNC, resamples=resamples, seed=seed)
    corrected_V = holm([comparison.p for comparison in compared])
    values_V = metric.of_sums(variants_VNC.sum(1))
    return [
        Effect(
            value=float(value), difference=comparison.difference, low=comparison.low, high=comparison.high,
            p=comparison.p, corrected=float(corrected), examples=len(counted(base_NC)),
        )
        for value, comparison, corrected in zip(values_V, compared, corrected_V, strict=True)
    ]  # fmt: skip


def identity(signature: Signature, variants: Sequence[Variant]) -> dict[str, Any]:
    """Settings that an unfinished measurement of variants depends on."""
    off = hashlib.sha256(repr([[str(head) for head in variant.off] for variant in variants]).encode()).hexdigest()
    metric = signature.arguments.get("metric")
    return {"weights": signature.weights, "data": signature.data, "metric": metric, "variants": off, "pieces": "runs"}


def ablation(
    model: nn.Module,
    task: Task | None,
    *,
    alpha: float = 0.01,
    fast: bool = True,
    heads: HeadNames | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Scores:
    """Decrease of the task's metric when each head alone is masked, with intervals and p-values.

    alpha: significance level; there are enough bootstrap resamples to reach it after correction.
    fast: False runs the full model for every head, for comparison.
    heads: the heads to mask, by default all; `encoder.0.*` is a whole site.
    folder: for unfinished work, from which the same call resumes.
    """
    if task is None:
        raise UsageError("The ablation score needs a task: the data on which the heads are to matter.")
    metric = task.metric
    ablated = locate(model).heads if heads is None else locate(model).find(heads)
    variants = [Variant(head.site, (head,)) for head in ablated]
    arguments: dict[str, Any] = {"score": "ablation", "metric": metric.name, "alpha": alpha}
    signature = Signature(weights=weight_hash(model), data=task.fingerprint, arguments=arguments)
    finished = shelf(folder, model, task, identity(signature, variants))
    measured = measure(model, task, variants, fast=fast, finished=finished, progress=progress)
    head_effects = effects(metric, measured, alpha=alpha)
    off = [variant.off[0] for variant in variants]

    def grid(pick: Callable[[Effect], float]) -> HeadGrid:
        return HeadGrid([(head, pick(effect)) for head, effect in zip(off, head_effects, strict=True)])

    low, high = (grid(lambda e: -metric.gain(e.low)), grid(lambda e: -metric.gain(e.high)))
    ends = [np.minimum(low.numbers(), high.numbers()), np.maximum(low.numbers(), high.numbers())]
    return Scores(
        [(head, -metric.gain(effect.difference)) for head, effect in zip(off, head_effects, strict=True)],
        signature=signature,
        low=HeadGrid(list(zip(off, ends[0], strict=True))),
        high=HeadGrid(list(zip(off, ends[1], strict=True))),
        p=grid(lambda e: e.p),
        corrected=grid(lambda e: e.corrected),
    )


SCORE = ablation
