"""Joined: what heads do beside what they are worth, from records of both. Makes a record that no study has to write.

Its part `comparisons` is a list with, for each measure of importance, kind of attention and group of roles:
heads, with_role, mean_with, mean_without, difference (with low and high over heads), top (how many heads are the most
important quarter), top_with_role and top_expected (by chance), correlation of importance with having such a role;
within_layers: the difference with each head's importance less the mean of its layer, as layers differ for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headcount.heads import PAPER_ROLES, Head
from headcount.record import Record
from headcount.statistics import mean_difference, spearman

STUDY = "role and importance"
GROUPS: dict[str, tuple[str, ...]] = {"of the paper": PAPER_ROLES, "any": ()}  # roles; all of them where none is named
TOP = 0.25  # share of the heads of a kind that count as the most important
_NOT_IMPORTANCE = ("confidence", "random", "magnitude")  # scores that are not of the model's work on data


def joined(records: Sequence[Record]) -> Record | None:
    """Roles and importance of one model side by side; None where a side is missing or of other weights."""
    roles = next((record for record in records if record.study == "roles" and record.parts.get("roles")), None)
    if roles is None:
        return None
    measures = {
        label: values
        for record in sorted(records, key=lambda record: record.study != "ablate")  # the exact measure first
        if not _differ(roles.signature.weights, record.signature.weights)
        for label, values in _importance(record)
    }
    comparisons = [
        comparison
        for label, values in measures.items()
        for kind in dict.fromkeys(Head.parse(name).kind for name in values)
        for comparison in _comparisons(label, kind, values, roles.parts["roles"])
    ]
    if not comparisons:
        return None
    signature = replace(roles.signature, arguments={**roles.signature.arguments, "importance": list(measures)})
    return Record(STUDY, signature, {"comparisons": comparisons})


def _differ(weights: str, others: str) -> bool:
    return bool(weights and others and weights != others)


def _importance(record: Record) -> Iterator[tuple[str, dict[str, float]]]:
    """Measures of importance in a record by name, higher = more important."""
    parts = record.parts
    if record.study == "ablate" and parts.get("one_out"):
        sign = -1 if parts["higher_is_better"] else 1
        values = {head: sign * float(effect["difference"]) for head, effect in parts["one_out"].items()}
        yield f"{parts['metric']} {'lost' if parts['higher_is_better'] else 'added'} without it", values
    elif record.study == "score" and parts.get("method") not in _NOT_IMPORTANCE:
        yield f"{parts['method']} score", {head: float(value) for head, value in parts["scores"].items()}


def _comparisons(
    label: str, kind: str, values: Mapping[str, float], roles: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[dict[str, Any]]:
    heads = [name for name in values if name in roles and Head.parse(name).kind == kind]
    for group, names in GROUPS.items():
        playing = {head for head in heads if any(not names or evidence["role"] in names for evidence in roles[head])}
        if heads and 0 < len(playing) < len(heads):
            yield {"measure": label, "kind": kind, "roles": group, **_compared(heads, playing, values)}


def _compared(heads: Sequence[str], playing: set[str], values: Mapping[str, float]) -> dict[str, Any]:
    groups = [[head for head in heads if (head in playing) == plays] for plays in (True, False)]
    sides = [[values[head] for head in group] for group in groups]
    difference = mean_difference(*sides)
    correlation = spearman([float(head in playing) for head in heads], [values[head] for head in heads])
    within = _within_layers(heads, values)
    inside = mean_difference(*([within[head] for head in group] for group in groups))
    top = max(1, round(TOP * len(heads)))
    best = sorted(heads, key=lambda head: -values[head])[:top]
    return {
        "heads": len(heads),
        "with_role": len(playing),
        "mean_with": sum(sides[0]) / len(sides[0]),
        "mean_without": sum(sides[1]) / len(sides[1]),
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "within_layers": inside.value,
        "within_layers_low": inside.low,
        "within_layers_high": inside.high,
        "top": top,
        "top_with_role": sum(head in playing for head in best),
        "top_expected": top * len(playing) / len(heads),
        "correlation": _plain(correlation.r),
        "correlation_low": _plain(correlation.low),
        "correlation_high": _plain(correlation.high),
    }


def _within_layers(heads: Sequence[str], values: Mapping[str, float]) -> dict[str, float]:
    """Importance less the mean of the layer."""
    layers: dict[tuple[str, int], list[float]] = {}
    for head in heads:
        layers.setdefault(Head.parse(head).site, []).append(values[head])
    means = {site: sum(numbers) / len(numbers) for site, numbers in layers.items()}
    return {head: values[head] - means[Head.parse(head).site] for head in heads}


def _plain(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if math.isnan(value) else value
