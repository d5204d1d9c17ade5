"""The result of a whole study's end: every claim of the papers with its number, its interval and a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.record.result import Result

WORDS = {True: "holds", False: "does not hold", None: "open"}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim of a paper from these records."""

    number: str  # V1 and so on of Voita et al. 2019, M1 and so on of Michel et al. 2019
    paper: str
    claim: str  # in our words
    where: str  # section or figure of the paper
    statistic: str  # definition of the number, and its threshold
    value: float
    low: float  # 95% interval
    high: float
    models: int  # behind the number
    runs: int  # seeds, epochs or budgets behind it; 1 if the model is measured once
    holds: bool | None  # None: open
    detail: str  # more numbers, or why it is open
    changed_by: str  # what would change the verdict

    @property
    def word(self) -> str:
        return WORDS[self.holds]


@dataclass(frozen=True)
class Ledger(Result):
    """Claims in the order of their numbers."""

    verdicts: tuple[Verdict, ...]
    models: tuple[str, ...] = ()  # models whose records it is decided on
    seeds: int = 0  # number of pruning seeds, summed over models

    def count(self, holds: bool | None) -> int:
        return sum(verdict.holds is holds for verdict in self.verdicts)


RESULT = Ledger
