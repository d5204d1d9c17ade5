"""Evidence: how far a head plays a role, against what chance or a fixed offset would give. Plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from headcount.statistics import Interval, holm

MIN_TRIALS = 30  # below it a share says too little for a verdict: 2 of 2 is 100%
ALPHA = 0.05  # of all verdicts on a model together


@dataclass(frozen=True)
class Evidence:
    """One role with one label (`positional -1`, `syntactic nsubj v->s`) as measured on one head."""

    role: str
    label: str
    value: float  # share of trials in which the head looks where the role says; monotone: from -1 to 1
    baseline: float  # what needs no such head: chance, or the best fixed offset
    threshold: float  # the value that the lower end of the interval has to reach
    low: float  # 95% bootstrap interval over sentences
    high: float
    trials: int  # queries, or instances of a relation, behind the value
    holds: bool | None  # the verdict; None: there are fewer than MIN_TRIALS trials
    p: float | None = None  # one-sided, that the value is below the threshold; exact, with sentences as observations
    corrected: float | None = None  # p after Holm's correction for all heads and labels that have enough trials
    halves: tuple[Interval, Interval] | None = None  # value on every other sentence, and on those between

    @property
    def certain(self) -> bool:
        """Whether the whole interval is on the side of the verdict; always so where the role holds."""
        return bool(self.holds) or (self.holds is False and self.high < self.threshold)

    def to_plain(self) -> dict[str, Any]:
        values = asdict(self)
        del values["halves"]  # for choosing and measuring apart; a record has what comes of it
        return values

    def __str__(self) -> str:
        return f"{self.role} {self.label} {self.value:.2f} (baseline {self.baseline:.2f})"


def held(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The roles a head plays, clearest first: by how far the value is above what it has to reach."""
    return tuple(sorted((one for one in evidence if one.holds), key=lambda one: one.threshold - one.value))


def decided(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Evidence of all heads and labels with verdicts that are corrected for their number.

    A role holds with MIN_TRIALS trials or more, its whole interval above the baseline and at or above the threshold,
    and the corrected p below ALPHA.
    """
    family = [place for place, one in enumerate(evidence) if one.trials >= MIN_TRIALS and one.p is not None]
    verdicts = list(evidence)
    for place, corrected in zip(family, holm([float(evidence[place].p or 0.0) for place in family]), strict=True):
        one = evidence[place]
        clear = one.low >= one.threshold and one.low > one.baseline
        verdicts[place] = replace(one, corrected=float(corrected), holds=bool(clear and corrected < ALPHA))
    return verdicts
