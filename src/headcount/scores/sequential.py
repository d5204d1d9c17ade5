"""Ablation that stops early: a variant is measured no further once it is certain that its heads matter.

If the heads do not matter, which of the two models gave which result on an example is a coin toss, whatever was seen
before. So a fair bet on the coming example cannot win in the long run: its capital e is a martingale that starts at 1
and exceeds 1 / alpha with probability alpha at most, whenever one looks (Ville's inequality). The bets are on the sign
of a bounded, odd function f of the example's effect: e = mean over stakes s of the product of 1 + s f.
Shapes: V variants, B examples of a batch, C columns of statistics, S stakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.metrics import Metric
from headcount.progress import Progress, silent
from headcount.scores.variants import Outcome, Variant, pieces_of
from headcount.sites.running import evaluating
from headcount.tasks.task import Task

_STAKES = np.array([sign * size for size in (0.05, 0.1, 0.2, 0.4, 0.8) for sign in (1, -1)])


@dataclass
class Bets:
    """The capital of bets against "it does not matter", for several variants."""

    count: int
    logs_VS: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.logs_VS = np.zeros((self.count, len(_STAKES)))

    def add(self, places: Sequence[int], effect_VB: np.ndarray, scale: float) -> None:
        """Bet on the effects of a batch on some variants; scale: what counts as large, known before the batch."""
        bounded_VB = np.clip(effect_VB / scale, -1, 1) if scale else np.sign(effect_VB)
        self.logs_VS[list(places)] += np.log1p(_STAKES * bounded_VB[..., None]).sum(1)

    def p(self) -> np.ndarray:
        """[V]: valid whenever one looks."""
        e_V = np.exp(self.logs_VS).mean(1)
        return np.minimum(1.0, 1.0 / np.maximum(e_V, 1e-300))


def influence(metric: Metric, base: np.ndarray, variant: np.ndarray) -> np.ndarray:
    """[B]: what each example's result does to the metric of its batch, to first order half-way between both models.

    Antisymmetric in base and variant [B, C], as the bets ask for: half-way stays where it is when they are swapped.
    """
    middle, change_BC, size = (base + variant).sum(0) / 2, variant - base, 1e-3
    moved = metric.of_sums(middle + size * change_BC) - metric.of_sums(middle - size * change_BC)
    return np.asarray(moved / (2 * size))


@dataclass(frozen=True)
class Stopped:
    """What is known of a variant when its measurement ended."""

    outcome: Outcome  # on the examples seen, of this variant alone
    p: float  # valid at any time of stopping
    examples: int


def until_certain(
    model: nn.Module,
    task: Task,
    metric: Metric,
    variants: Sequence[Variant],
    *,
    alpha: float = 0.01,
    progress: Progress = silent,
) -> list[Stopped]:
    """Measure variants batch by batch, each until p is below alpha / variants, or to the end of the data."""
    bets, still = Bets(len(variants)), list(range(len(variants)))
    seen: list[list[dict[str, np.ndarray]]] = [[] for _ in variants]
    scale = 0.0
    with evaluating(model):
        items, _ = pieces_of(model, task, variants)
        for number, item in enumerate(items, start=1):
            piece = pieces_of(model, task, [variants[place] for place in still])[1](item)
            base_BC, open_VBC = piece["base"], piece["variants"]
            effect_VB = np.stack([influence(metric, base_BC, some) for some in open_VBC])
            bets.add(still, effect_VB, scale)
            scale = float(np.quantile(np.abs(effect_VB), 0.9)) or scale  # for the next batch
            for place, some in zip(still, open_VBC, strict=True):
                seen[place].append({"base": base_BC, "variant": some})
            certain = bets.p() < alpha / len(variants)
            still = [place for place in still if not certain[place]]
            progress("batches", number, len(items))
            if not still:
                break
    if not any(seen):
        raise UsageError("The task has no batches: there is nothing to measure on.")
    return [_stopped(parts, p) for parts, p in zip(seen, bets.p(), strict=True)]


def _stopped(parts: list[dict[str, np.ndarray]], p: float) -> Stopped:
    base = np.concatenate([part["base"] for part in parts])
    outcome = Outcome(base, np.concatenate([part["variant"] for part in parts])[None])
    return Stopped(outcome, float(p), len(base))
