"""Apart: what tells scores of the same method apart."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.record import Record
from headcount.record.results.score import Scoring


def arguments_apart(score: Record[Scoring], scores: Sequence[Record[Scoring]]) -> str:
    """The arguments of a score that others of its method do not share, to append to its name: `, rule ding`."""
    arguments = score.signature.arguments
    others = [other.signature.arguments for other in scores if other.parts.method == score.parts.method]
    return "".join(
        f", {name} {value}"
        for name, value in arguments.items()
        if value is not None and any(other.get(name) != value for other in others)
    )
