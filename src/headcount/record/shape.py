"""Shape: the number of heads of each site of a model, from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headcount.heads import Head
from headcount.record.results.ablate import Ablation
from headcount.record.results.roles import RolesFound
from headcount.record.results.score import Scoring
from headcount.record.results.tradeoff import Tradeoff

_HEADS_OF = {  # in this order: the first that is there counts
    Ablation: lambda parts: parts.one_out,
    Scoring: lambda parts: parts.scores,
    RolesFound: lambda parts: parts.confidence,
}


def shape_of(results: Iterable[Any]) -> str:
    """Heads of every site of the model of these results, in words; empty if none names all heads.

    Models that are draws from one population have the same.
    """
    by_kind: dict[str, list[int]] = {}
    for site, count in _sites(list(results)).items():
        by_kind.setdefault(site.partition(".")[0], []).append(count)
    return ", ".join(f"{kind} {_layers(counts)}" for kind, counts in by_kind.items())


def _sites(results: Sequence[Any]) -> Mapping[str, int]:
    """Site -> number of heads."""
    tradeoff = next((parts for parts in results if isinstance(parts, Tradeoff)), None)
    if tradeoff:
        return tradeoff.heads_by_site
    named = (heads(parts) for kind, heads in _HEADS_OF.items() for parts in results if isinstance(parts, kind))
    return Counter("{}.{}".format(*Head.parse(name).site) for name in next(named, ()))


def _layers(counts: Sequence[int]) -> str:
    """Layers by heads: `3 x 4`."""
    return f"{len(counts)} x {counts[0]}" if len(set(counts)) == 1 else "+".join(map(str, counts))
