"""Shares: how many of some heads or layers have a property, and the claims that such a share decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headcount.claims.claim import NOTICEABLE, Measurement, above, averaged, pooled
from headcount.heads import sites_of
from headcount.metrics import ACCURACY
from headcount.record.results.ablate import Ablation, BestAlone, Effect
from headcount.statistics import Interval, share_in_groups, share_interval

TOO_FEW = "too few examples, or right answers, for any loss to be significant"


def can_harm(parts: Ablation, effects: Iterable[Effect]) -> bool:
    """Whether there are enough examples for a p below alpha; with fewer, removing any head would look harmless."""
    return 2.0 ** (1 - max(_can_be_lost(parts, effect) for effect in effects)) < parts.alpha


def _can_be_lost(parts: Ablation, effect: Effect) -> int:
    """Examples that can become worse: of answers, those that the whole model gives right."""
    unmasked = effect.value - effect.difference
    return round(unmasked * effect.examples) if parts.metric == ACCURACY.name else effect.examples


def is_harmless(parts: Ablation, effect: Effect | BestAlone) -> bool:
    """Whether a change does not make the model worse, at the level of the paper and without correction."""
    return not (effect.p < parts.alpha and parts.harm(effect) > 0)


def cannot_harm(parts: Ablation, effect: Effect | BestAlone) -> bool:
    """Whether a change is harmless, and its interval excludes a noticeable loss: few examples find no loss."""
    loss = -effect.low if parts.higher_is_better else effect.high
    return is_harmless(parts, effect) and loss < NOTICEABLE * abs(effect.value - effect.difference)


def unless_noticed(interval: Interval, certain: Interval) -> Interval:
    """The interval of a share of harmless cases, whose lower end is that of the cases that cannot harm."""
    return interval._replace(low=min(interval.low, certain.low))


def share_of_layers(counts: Sequence[tuple[int, int]]) -> Interval:
    """The share of layers, pooled over models; counts: for each model, those with a property and all."""
    return pooled([share_interval(*count) for count in counts])


def share_of_heads(models: Sequence[Sequence[Mapping[str, bool]]]) -> Interval:
    """The share of heads with a property, pooled over models and their seeds: [model][seed] has it by head.

    Heads of a layer are alike, which makes the interval of one model wider. Several models differ by as much; seeds of
    one model do not, as they keep many of the same heads: their interval is no narrower than that of one.
    """
    if len(models) == 1:
        return averaged([share_in_groups(list(having.values()), sites_of(having)) for having in models[0]])
    return pooled([pooled([share_interval(sum(row.values()), len(row)) for row in seeds]) for seeds in models])


def decided_by_share(
    interval: Interval, counts: Sequence[tuple[int, int]], threshold: float, cases: str
) -> Measurement:
    """A claim that holds if the share of cases, pooled over models, is above a threshold.

    counts: for each model, the number of cases with the property and of all cases. cases: their name.
    """
    having, total = map(sum, zip(*counts, strict=True))
    return Measurement(interval, above(interval, threshold), len(counts), 1, f"{having} of {total} {cases}")
