"""rules: how far the rules of relevance propagation agree about which heads matter, as a record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from torch import nn

from headcount.errors import ModelError
from headcount.progress import Progress, named, silent
from headcount.record import Record, Signature
from headcount.scores.score import Scores, score
from headcount.sites.fingerprint import weight_hash
from headcount.statistics import spearman
from headcount.tasks.task import Task

VARIANTS = (
    "ding",
    "ding redistribute",
    "ding-product",
    "attnlrp",
    "zplus2019",
    "alphabeta2021",
)  # rule, reading of biases


def compare_rules(
    model: nn.Module,
    task: Task,
    *,
    name: str = "",
    variants: Sequence[str] = VARIANTS,
    target: str = "own",
    progress: Progress = silent,
) -> Record:
    """Score by every rule and correlate the ranks of heads, pair by pair: within each kind, and over all heads.

    A rule that cannot follow relevance through the model is noted with its reason and left out.
    """
    found: dict[str, Scores] = {}
    refused: dict[str, str] = {}
    for variant in variants:
        rule, _, bias = variant.partition(" ")
        options = {"rule": rule, "bias": bias or None, "target": target}
        try:
            found[variant] = score("relevance", model, task, **options, progress=named(variant, progress))
        except ModelError as error:
            refused[variant] = str(error)
    parts = {
        "scores": {variant: {str(head): each[head] for head in each} for variant, each in found.items()},
        "details": {variant: each.details for variant, each in found.items()},
        "spearman": {f"{one} / {other}": _agreement(found[one], found[other]) for one, other in combinations(found, 2)},
        "refused": refused,
    }
    arguments = {"variants": list(variants), "target": target}
    return Record("rules", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def _agreement(one: Scores, other: Scores) -> dict[str, dict[str, Any]]:
    """Spearman's correlation of two scores: kind -> r, 95% interval and p; None where it is not defined."""
    groups = {"all": one.kinds, **{kind: (kind,) for kind in one.kinds}}
    found = {}
    for group, kinds in groups.items():
        result = spearman(one.of(*kinds).numbers(), other.of(*kinds).numbers())
        found[group] = {name: value if value == value else None for name, value in result._asdict().items()}
    return found
