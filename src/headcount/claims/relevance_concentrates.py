"""V1: in every layer, relevance concentrates on one or two heads (Voita et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.heads import Head
from headcount.statistics import mean_interval

_ROUNDS = 1000


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    scores = [scoring.scores for model in models if (scoring := model.scores("relevance"))]
    tables = [table for table in map(_layers, scores) if table]
    if not tables:
        return missing("no record of relevance with layers of three heads or more")
    leads, shares = [], []
    for layers in tables:
        top = [_top(values, 2) for values in layers]
        shares.append(np.mean(top))
        leads.append(
            mean_interval([share - broken_stick(len(values), 2) for share, values in zip(top, layers, strict=True)])
        )
    lead = pooled(leads)
    detail = (
        f"the top head of a layer has {_mean_of(tables, lambda layer: _top(layer, 1)):.0%}, the top two "
        f"{np.mean(shares):.0%}, Gini {_mean_of(tables, gini):.2f}; with heads dealt to layers anew the top two would "
        f"have {np.mean([_dealt(layers) for layers in tables]):.0%}"
    )
    return Measurement(lead, above(lead, 0.0), len(tables), 1, detail)


def _layers(scores: Mapping[str, float]) -> list[np.ndarray]:
    """The relevance of each layer of the encoder, or only stack, as shares; negative relevance counts as none."""
    kind = Head.parse(next(iter(scores))).kind
    layers: dict[int, list[float]] = {}
    for name, value in scores.items():
        head = Head.parse(name)
        if head.kind == kind:
            layers.setdefault(head.layer, []).append(max(value, 0.0))
    return [np.array(values) / sum(values) for values in layers.values() if len(values) > 2 and sum(values) > 0]


def _top(values: np.ndarray, count: int) -> float:
    return float(np.sort(values)[-count:].sum() / values.sum())


def _mean_of(tables: Sequence[Sequence[np.ndarray]], of_layer: Callable[[np.ndarray], float]) -> float:
    return float(np.mean([of_layer(layer) for layers in tables for layer in layers]))


def gini(values: np.ndarray) -> float:
    """Gini coefficient: 0 if all heads are equal, near 1 if one head has everything."""
    ordered, count = np.sort(values), len(values)
    return float((2 * np.arange(1, count + 1) - count - 1) @ ordered / (count * ordered.sum()))


def broken_stick(heads: int, count: int) -> float:
    """Expected share of the `count` longest of `heads` pieces of a stick broken at random points."""
    return sum(sum(1 / size for size in range(rank, heads + 1)) for rank in range(1, count + 1)) / heads


def _dealt(layers: Sequence[np.ndarray]) -> float:
    """The mean share of the top two if heads are permuted among layers."""
    random, everyone = np.random.default_rng(0), np.concatenate(list(layers))
    ends = np.cumsum([len(values) for values in layers])[:-1]
    dealt = (np.split(random.permutation(everyone), ends) for _ in range(_ROUNDS))
    return float(np.mean([_top(values, 2) for deal in dealt for values in deal if values.sum() > 0]))


CLAIM = Claim(
    number="V1",
    sentence="In each layer, one or two heads carry most of the relevance.",
    where="Figure 1a as we read it; section 4 says that a small number of heads matter much more than all others",
    statistic=(
        "share of a layer's relevance that its top two heads have, less that of a stick broken at random into as many "
        "pieces; mean over layers; above 0"
    ),
    part="relevance",
    changed_by="more layers and models; a weaker benchmark than the broken stick, such as heads dealt to layers anew",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
