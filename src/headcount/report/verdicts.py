"""Verdicts: what the evidence of a record says of a role, in the words that every table uses."""

from __future__ import annotations

from collections.abc import Iterable

from headcount.record.results.roles import Evidence


def verdict(evidence: Evidence) -> str:
    """Whether the role is held, or why that is open."""
    if evidence.holds is None:
        return f"not enough trials ({evidence.trials})"
    return "yes" if evidence.holds else "no"


def undecided(evidence: Iterable[Evidence]) -> list[str]:
    """Roles with their labels that have no verdict, each once: trials depend on the text, not on the head."""
    reasons = (f"{item.role} {item.label}: {verdict(item)}" for item in evidence if item.holds is None)
    return list(dict.fromkeys(reasons))


def uncertain(evidence: Iterable[Evidence]) -> int:
    """How often a role reaches its threshold by value, but not beyond doubt."""
    return sum(item.holds is False and item.value >= item.threshold > item.baseline for item in evidence)
