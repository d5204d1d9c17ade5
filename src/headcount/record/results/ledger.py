"""The result of a whole study's end: every claim of the papers with its number, its interval and a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.record.result import Result

WORDS = {True: "holds", False: "does not hold", None: "open"}


@dataclass(frozen=True)
class Verdict:
    """One claim of a paper as it stands on these records."""

    number: str  # V1 and so on of Voita et al. 2019, M1 and so on of Michel et al. 2019
    paper: str
    claim: str  # in our words
    where: str  # the paper says it
    statistic: str  # what the number is, and what it has to reach
    value: float
    low: float  # 95% interval
    high: float
    models: int  # behind the number
    runs: int  # seeds, epochs or budgets behind it; 1 where the model is measured once
    holds: bool | None  # the whole interval says so; None: open
    detail: str  # more numbers, or why it is open
    changed_by: str  # what would change the verdict

    @property
    def word(self) -> str:
        return WORDS[self.holds]


@dataclass(frozen=True)
class Ledger(Result):
    """Claims in the order of their numbers."""

    verdicts: tuple[Verdict, ...]
    models: tuple[str, ...] = ()  # whose records it is decided on
    seeds: int = 0  # that they were pruned with, summed over models

    def count(self, holds: bool | None) -> int:
        return sum(verdict.holds is holds for verdict in self.verdicts)


RESULT = Ledger
