"""Evidence: how far a head plays a role, against what chance or a fixed offset would give. Plain numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

MIN_TRIALS = 30  # below it a share says too little for a verdict: 2 of 2 is 100%


@dataclass(frozen=True)
class Evidence:
    """One role with one label (`positional -1`, `syntactic nsubj v->s`) as measured on one head."""

    role: str
    label: str
    value: float  # share of trials in which the head looks where the role says; monotone: from -1 to 1
    baseline: float  # what needs no such head: chance, or the best fixed offset
    threshold: float  # the value from which on the head is said to play the role
    low: float  # 95% bootstrap interval over sentences
    high: float
    trials: int  # queries, or instances of a relation, behind the value
    holds: bool | None  # the verdict; None: there are fewer than MIN_TRIALS trials

    @property
    def certain(self) -> bool:
        """Whether there is a verdict and the whole interval is on its side."""
        if self.holds is None:
            return False
        return self.low >= self.threshold if self.holds else self.high < self.threshold

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.role} {self.label} {self.value:.2f} (baseline {self.baseline:.2f})"


def held(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The roles a head plays, clearest first: by how far the value is above what it has to reach."""
    return tuple(sorted((one for one in evidence if one.holds), key=lambda one: one.threshold - one.value))
