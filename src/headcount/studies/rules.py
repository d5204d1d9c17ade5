"""rules: agreement of the rules of relevance propagation about the importance of heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from torch import nn

from headcount.errors import ModelError
from headcount.heads import HeadGrid, sites_of
from headcount.progress import Progress, named, silent
from headcount.record import Record, Signature
from headcount.record.results.rules import Agreement, Rules
from headcount.scores.score import Scores, score
from headcount.sites.fingerprint import weight_hash
from headcount.statistics import Correlation, spearman
from headcount.studies.scoring import conservation
from headcount.tasks.task import Task

# Rules, one of them also with another treatment of biases.
VARIANTS = ("ding", "ding redistribute", "ding-product", "attnlrp", "zplus2019", "alphabeta2021")


def compare_rules(
    model: nn.Module,
    task: Task,
    *,
    name: str = "",
    variants: Sequence[str] = VARIANTS,
    target: str = "own",
    progress: Progress = silent,
) -> Record[Rules]:
    """Score by every rule and correlate the ranks of heads, pair by pair: within each kind, and over all heads.

    A rule that does not support the model is left out, with its reason in the record.
    """
    scores: dict[str, Scores] = {}
    refused: dict[str, str] = {}
    for variant in variants:
        rule, _, bias = variant.partition(" ")
        options = {"rule": rule, "bias": bias or None, "target": target}
        try:
            scores[variant] = score("relevance", model, task, **options, progress=named(variant, progress))
        except ModelError as error:
            refused[variant] = str(error)
    parts = Rules(
        by_rule={variant: {str(head): scored[head] for head in scored} for variant, scored in scores.items()},
        conservation={variant: conservation(scored) for variant, scored in scores.items()},
        agreements=tuple(
            Agreement(rule, other, _agreement(scores[rule], scores[other])) for rule, other in combinations(scores, 2)
        ),
        refused=refused,
    )
    arguments = {"variants": list(variants), "target": target}
    return Record("rules", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def _agreement(scores: Scores, other_scores: Scores) -> dict[str, Correlation]:
    """Spearman's correlation of two scores over all heads, and within each kind."""
    groups = {"all": scores.kinds, **{kind: (kind,) for kind in scores.kinds}}
    return {group: _over_heads(scores.of(*kinds), other_scores.of(*kinds)) for group, kinds in groups.items()}


def _over_heads(scores: HeadGrid, other_scores: HeadGrid) -> Correlation:
    return spearman(scores.numbers(), other_scores.numbers(), groups=sites_of(scores))
