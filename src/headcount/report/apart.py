"""Apart: what tells scores and pruned models of the same method apart."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.prune import Pruning
from headcount.record.results.score import Scoring


def arguments_apart(score: Record[Scoring], scores: Sequence[Record[Scoring]]) -> str:
    """The arguments of a score that others of its method do not share, to append to its name: `, rule ding`."""
    arguments = score.signature.arguments
    of_method = [other.signature.arguments for other in scores if other.parts.method == score.parts.method]
    return "".join(
        f", {name} {value}"
        for name, value in arguments.items()
        if value is not None and name != "data" and any(other.get(name) != value for other in of_method)
    )


def pruned_by(record: Record[Pruning], records: Sequence[Record]) -> str:
    """The method of a pruned model; with its number of heads, and the last stage, where others have the same."""
    prunings = [other.parts for other in records if other is not record and isinstance(other.parts, Pruning)]
    parts, name = record.parts, record.parts.method
    alike = [other for other in prunings if other.method == parts.method]
    if alike:
        name += f", {plural(len(parts.heads), 'head')} left"
    if any(len(other.heads) == len(parts.heads) for other in alike) and parts.stages:
        name += f", {list(parts.stages)[-1]}"
    return name
