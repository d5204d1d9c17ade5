"""Claim: a statement of a paper with the statistic and threshold that decide it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan

import numpy as np

from headcount.claims.studied import StudiedModel
from headcount.registry import Registry
from headcount.statistics import NORMAL as NORMAL
from headcount.statistics import Interval, t_interval

PAPERS = {"V": "voita2019", "M": "michel2019"}
NOTICEABLE = 0.05  # loss of the score
_ROUNDING = 1e-12
_NOTHING = Interval(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Measurement:
    """The statistic of a claim on some records."""

    interval: Interval
    holds: bool | None  # None: open
    models: int = 0
    runs: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and how it is decided."""

    number: str  # with the initial of its paper
    sentence: str
    where: str  # section or figure of the paper
    statistic: str
    part: str  # part of a whole study that writes the record it needs
    changed_by: str  # what would change the verdict
    measure: Callable[[Sequence[StudiedModel]], Measurement]
    bounds: tuple[float, float] = (-inf, inf)  # values that the statistic can have
    compares_data: bool = False  # compares models of different target languages or domains
    also: tuple[str, ...] = ()  # further parts that it needs
    data: str = "DATA"  # of its command
    options: str = ""  # of its command

    def measured(self, models: Sequence[StudiedModel]) -> Measurement:
        """The statistic on these models; the ends of a t-interval stay within its bounds; 1e-17 is 0."""
        measurement = self.measure(models)
        value, *ends = (0.0 if abs(number) < _ROUNDING else number for number in measurement.interval)
        lowest, highest = self.bounds
        return replace(measurement, interval=Interval(value, *(min(max(end, lowest), highest) for end in ends)))

    @property
    def command(self) -> str:
        """The study that decides it. Commands of their own write the same records, but have no ledger."""
        parts = ",".join((*self.also, self.part))
        options = f"{self.options} " if self.options else ""
        return f"headcount study all MODEL --task TASK --data {self.data} {options}--parts {parts} --out DIR"

    @property
    def paper(self) -> str:
        return PAPERS[self.number[0]]

    @property
    def order(self) -> tuple[bool, int]:
        """Voita et al. first, then by number."""
        return self.number[0] != "V", int(self.number[1:])


claims: Registry[Claim] = Registry("claim", "headcount.claims", "CLAIM")


def ordered(papers: Collection[str] = tuple(PAPERS.values())) -> list[Claim]:
    """The claims of these papers by number."""
    return sorted((claim for _, claim in claims.items() if claim.paper in papers), key=lambda claim: claim.order)


def missing(reason: str) -> Measurement:
    """A claim that these records cannot decide."""
    return Measurement(_NOTHING, None, detail=reason)


def above(interval: Interval, threshold: float) -> bool | None:
    """True or False if the whole interval is on one side of the threshold, by more than rounding; else None."""
    if isnan(interval.low) or isnan(interval.high):
        return None
    return True if interval.low > threshold + _ROUNDING else False if interval.high < threshold - _ROUNDING else None


def averaged(intervals: Sequence[Interval]) -> Interval:
    """The mean of values and ends: the interval does not shrink, for measurements that are not independent."""
    return Interval(*(sum(ends) / len(intervals) for ends in zip(*intervals, strict=True)))


def pooled(
    intervals: Sequence[Interval], *, shared: bool = False, tests: int = 1, units: int = 3, grain: float = 0.0
) -> Interval:
    """The mean over models. One model keeps its interval; several get a t-interval that includes theirs.

    shared: the intervals are over something that all models share, such as examples or relations. It does not average
    out over models, so its variance is added undivided; if it is unknown, so is the interval.
    tests: number of intervals that are looked at together, each of which is wider for it.
    units: seeds or examples of a single model. grain: step of numbers that are counts, see `t_interval`.
    """
    if len(intervals) == 1:
        return intervals[0] if tests == 1 else widened(intervals[0], tests, units)
    variance = sum(deviation(interval) ** 2 for interval in intervals) / len(intervals)
    values = [interval.value for interval in intervals]
    if shared and any(isnan(interval.low) or isnan(interval.high) for interval in intervals):
        variance = float("nan")
    variance = variance if shared else variance / len(intervals)
    return t_interval(values, variance, confidence=1 - 0.05 / tests, grain=grain)


def over_seeds(values: Sequence[float], *, grain: float) -> Interval:
    """The mean over the seeds of a model, of numbers that are counts; a single seed has no interval."""
    return t_interval(values, grain=grain) if len(values) > 1 else Interval(values[0], float("nan"), float("nan"))


def widened(interval: Interval, tests: int, units: int = 3) -> Interval:
    """A 95% interval with the confidence that one of several needs.

    units: seeds or examples that it is over. A higher confidence costs more the fewer they are.
    """
    from scipy.stats import t

    scale = float(t.ppf(1 - 0.025 / tests, units - 1) / t.ppf(0.975, units - 1))
    return interval.stretched(scale)


def least(
    parts: Sequence[Sequence[Interval]], *, shared: bool = False, units: int = 3, grains: Sequence[float] = ()
) -> Interval:
    """The smallest of several numbers, each measured on the same models: [number][model].

    Its lower end is the lowest of theirs, without correction: it is too high only if that of the smallest number is.
    Its upper end is corrected for how many there are: the smallest of several is below its mean by chance.
    """
    sized = list(zip(parts, grains or [0.0] * len(parts), strict=True))
    lows = [pooled(part, shared=shared, grain=grain).low for part, grain in sized]
    rows = [pooled(part, shared=shared, tests=len(parts), units=units, grain=grain) for part, grain in sized]
    low = float("nan") if any(map(isnan, lows)) else min(lows)
    return Interval(min(row.value for row in rows), low, min(row.high for row in rows))


def deviation(interval: Interval) -> float:
    """The standard deviation that corresponds to a 95% interval; 0 if it has no ends."""
    return 0.0 if isnan(interval.deviation) else interval.deviation


def difference(left: Interval, right: Interval) -> Interval:
    """The first minus the second independent measurement; its interval is wider than that of a paired comparison."""
    value = left.value - right.value
    if any(isnan(end) for end in (*left, *right)):
        return Interval(value, float("nan"), float("nan"))
    low = value - np.hypot(left.value - left.low, right.high - right.value)
    high = value + np.hypot(left.high - left.value, right.value - right.low)
    return Interval(value, float(low), float(high))
