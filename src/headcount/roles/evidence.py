"""Evidence: how far a head plays a role, and which of it is enough to say so."""

from __future__ import annotations

from collections.abc import Iterable

from headcount.record.results.roles import Evidence as Evidence

MIN_TRIALS = 30  # below it a share says too little for a verdict: 2 of 2 is 100%


def held(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The roles a head plays, clearest first."""
    return tuple(sorted((item for item in evidence if item.holds), key=lambda item: -item.margin))
