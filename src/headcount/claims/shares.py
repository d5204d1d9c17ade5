"""Shares: how many of some heads or layers have a property, and the claims that such a share decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headcount.claims.claim import Measurement, above, pooled
from headcount.record.results.ablate import Ablation, BestAlone, Effect
from headcount.statistics import share_interval as share_interval

TOO_FEW = "too few examples for any loss to be significant"


def can_harm(parts: Ablation, effects: Iterable[Effect]) -> bool:
    """Whether there are enough examples for a p below alpha; with fewer, removing any head would look harmless."""
    return 2.0 ** (1 - max(effect.examples for effect in effects)) < parts.alpha


def is_harmless(parts: Ablation, effect: Effect | BestAlone) -> bool:
    """Whether a change does not make the model worse, at the level of the paper and without correction."""
    return not (effect.p < parts.alpha and parts.harm(effect) > 0)


def decided_by_share(counts: Sequence[tuple[int, int]], threshold: float, cases: str) -> Measurement:
    """A claim that holds if the share of cases, pooled over models, is above a threshold.

    counts: for each model, the number of cases with the property and of all cases. cases: their name.
    """
    interval = pooled([share_interval(*count) for count in counts])
    having, total = map(sum, zip(*counts, strict=True))
    return Measurement(interval, above(interval, threshold), len(counts), 1, f"{having} of {total} {cases}")
