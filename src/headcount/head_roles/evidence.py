"""Evidence: how well a head matches a role, and the verdict whether it has the role."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from headcount.record.results.roles import MIN_TRIALS as MIN_TRIALS
from headcount.record.results.roles import Evidence as Evidence
from headcount.statistics import Interval, holm

ALPHA = 0.05  # for all verdicts on a model together
Some = TypeVar("Some", bound=Evidence)


@dataclass(frozen=True)
class HalvedEvidence(Evidence):
    """Evidence with its value on two halves of the sentences, so that a head can be chosen on one of them."""

    halves: tuple[Interval, Interval] | None = None  # sentences with even and with odd numbers
    odd_trials: int | None = None  # of those with odd numbers
    odd_baseline: float | None = None  # on those with odd numbers; the best offset is that of the even ones
    odd_excluded: bool | None = None  # `excluded` on those with odd numbers

    def plain(self) -> Evidence:
        """The evidence as stored in records."""
        return Evidence(**{field.name: getattr(self, field.name) for field in fields(Evidence)})


def held(evidence: Iterable[Some]) -> tuple[Some, ...]:
    """The roles that a head has, those with the largest margin first."""
    return tuple(sorted((item for item in evidence if item.holds), key=lambda item: -item.margin))


def decided(evidence: Sequence[HalvedEvidence]) -> list[HalvedEvidence]:
    """Evidence of all heads and labels with verdicts, corrected for their number.

    A role holds if there are at least MIN_TRIALS trials, the whole interval is above the baseline and at or above the
    threshold, and the corrected p-value is below ALPHA.
    """
    family = [index for index, item in enumerate(evidence) if item.trials >= MIN_TRIALS and item.p is not None]
    verdicts = list(evidence)
    for index, corrected in zip(family, holm([float(evidence[index].p or 0.0) for index in family]), strict=True):
        item = evidence[index]
        clear = item.low >= item.threshold and item.low > item.baseline
        verdicts[index] = replace(item, corrected=float(corrected), holds=bool(clear and corrected < ALPHA))
    return verdicts
