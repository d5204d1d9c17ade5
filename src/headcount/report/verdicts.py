"""Verdicts: the wording of the evidence for a role, the same in all tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headcount.record.results.roles import MIN_TRIALS, Best, Evidence

_NAMED = 3  # roles without a verdict that a sentence names


def verdict(evidence: Evidence) -> str:
    """Whether the head has the role; open if more trials could show it; or why there is no verdict."""
    if evidence.holds is None and isinstance(evidence, Best) and evidence.held_out:  # its trials are those of a half
        return f"not enough trials (fewer than {MIN_TRIALS} in both halves together)"
    if evidence.holds is None:
        return f"not enough trials ({evidence.trials} of {MIN_TRIALS})"
    return "yes" if evidence.holds else "no" if evidence.certain else "open"


def undecided(evidence: Iterable[Evidence]) -> list[str]:
    """Roles with labels without a verdict, each once: trials depend on the text, not on the head."""
    reasons = (f"{item.role} {item.label}: {verdict(item)}" for item in evidence if item.holds is None)
    return list(dict.fromkeys(reasons))


def uncertain(evidence: Iterable[Evidence]) -> int:
    """Number of values that reach their threshold, but not for certain: see `decided`."""
    return sum(item.holds is False and item.value >= item.threshold > item.baseline for item in evidence)


def close_values(evidence: Iterable[Evidence]) -> str:
    """How many values reach their threshold, but not for certain; empty if there are none."""
    count = uncertain(evidence)
    values = "1 value reaches its threshold" if count == 1 else f"{count} values reach their threshold"
    return f"{values}, but not for certain (whole interval, and p below .05 after Holm's correction)" if count else ""


def missing_trials(evidence: Sequence[Evidence]) -> str:
    """One sentence on roles that more text could decide; empty if there are none."""
    trials = {f"{item.role} {item.label}": item.trials for item in evidence if item.holds is None}
    close, reasons = close_values(evidence), []
    if trials:
        named = ", ".join(f"{name} {count}" for name, count in list(trials.items())[:_NAMED])
        more = f" and {len(trials) - _NAMED} more" if len(trials) > _NAMED else ""
        roles = "1 role has" if len(trials) == 1 else f"{len(trials)} roles have"
        reasons.append(f"{roles} fewer than the {MIN_TRIALS} trials of a verdict ({named}{more})")
    if close:
        reasons.append(close)
    return f"More sentences may show more roles: {'; '.join(reasons)}." if reasons else ""
