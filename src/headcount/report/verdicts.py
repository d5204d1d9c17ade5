"""Verdicts: what the evidence of a record says of a role, in the words that every table uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def verdict(evidence: Mapping[str, Any]) -> str:
    """Whether the role is held, or why that is open."""
    if evidence["holds"] is None:
        return f"not enough trials ({evidence['trials']})"
    return "yes" if evidence["holds"] else "no"


def undecided(evidence: Iterable[Mapping[str, Any]]) -> list[str]:
    """Roles with their labels that have no verdict, each once: trials depend on the text, not on the head."""
    return list(
        dict.fromkeys(f"{one['role']} {one['label']}: {verdict(one)}" for one in evidence if one["holds"] is None)
    )


def uncertain(evidence: Iterable[Mapping[str, Any]]) -> int:
    """How often a role reaches its threshold by value, but not beyond doubt."""
    return sum(one["holds"] is False and one["value"] >= one["threshold"] > one["baseline"] for one in evidence)
