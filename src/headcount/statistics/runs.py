"""Runs: one number measured on several models and seeds. The interval includes the variance of all.

Each run has its number on resampled examples too, with the same resamples for all runs, so that examples shared by
all runs do not count as independent. Shapes: M models, R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headcount.statistics.bootstrap import percentile_interval
from headcount.statistics.interval import NORMAL, Interval, mean_interval
from headcount.statistics.skewness import widen

FEW = 10  # models, or seeds of one model, below which the interval is a t-interval on their means


class Runs(NamedTuple):
    """The mean over models of the mean over their seeds, with its 95% interval."""

    value: float
    low: float
    high: float
    models: int
    seeds: int  # runs in all
    method: str  # "examples": one run, the interval is over examples only; "t"; "bootstrap"
    parts: dict[str, float]  # contributions of models, seeds and examples to the variance of the mean

    @property
    def behind(self) -> str:
        """Number of models and seeds, in words."""
        models = "1 model" if self.models == 1 else f"{self.models} models"
        seeds = "1 seed" if self.seeds == 1 else f"{self.seeds} seeds" + (" in all" if self.models > 1 else "")
        over = {
            "examples": "the interval is over examples alone",
            "t": f"t-interval over {'models' if self.models > 1 else 'seeds'}, examples included",
            "bootstrap": "hierarchical bootstrap over models, seeds and examples",
        }
        return f"{models}, {seeds}: {over[self.method]}"


def over_runs(
    values: Sequence[Sequence[float]],
    drawn: Sequence[Sequence[np.ndarray]],
    *,
    examples: int,
    influence: np.ndarray | None = None,
    seed: int = 0,
) -> Runs:
    """The mean of a number over runs, values[model][seed]; drawn[model][seed] is [R], the number on resampled examples.

    examples: how many there are. The interval of a single run is corrected for a long tail of them, and of their
    influence [examples] on the number (see `influences`), if it is given.
    Units are models, or the seeds of a single model. Below FEW units: mean of the units +- t x sqrt(variance of the
    units / their number + variance over examples). From FEW on, models, their seeds and examples are resampled.
    """
    if not values or any(not seeds for seeds in values) or [len(row) for row in values] != [len(row) for row in drawn]:
        raise ValueError(
            f"Every model needs at least one run, and every run its draws; got {[len(v) for v in values]}."
        )
    runs, means_M = sum(map(len, values)), np.array([np.mean(seeds) for seeds in values])
    units = means_M if len(values) > 1 else np.asarray(values[0], dtype=np.float64)
    value = float(means_M.mean())
    over_examples_R = np.mean([np.mean(seeds, axis=0) for seeds in drawn], axis=0)
    parts = _parts(values, means_M, float(over_examples_R.var(ddof=1)))
    if len(units) == 1:
        low, high = widen(*percentile_interval(over_examples_R, units=examples), over_examples_R, examples, influence)
        return Runs(value, float(low), float(high), len(values), runs, "examples", parts)
    if len(units) < FEW:
        interval = t_interval(units, parts["examples"])
        return Runs(value, interval.low, interval.high, len(values), runs, "t", parts)
    low, high = np.percentile(_stretched(_hierarchical(drawn, np.random.default_rng(seed)), len(units)), [2.5, 97.5])
    return Runs(value, float(low), float(high), len(values), runs, "bootstrap", parts)


def t_interval(
    units: Sequence[float] | np.ndarray,
    variance: float = 0.0,
    *,
    confidence: float = 0.95,
    grain: float = 0.0,
    fewest: int | None = None,
) -> Interval:
    """The mean of models or seeds with its interval; variance: what examples add to that of the mean.

    grain: step of numbers that are counts. Two counts are often equal by chance, and no counts vary less than rounded
    numbers, whose variance is grain^2 / 12. fewest: how many the added variance is over, if they are fewer than units.
    """
    from scipy.stats import t

    values = np.asarray(units, dtype=np.float64)
    of_unit = max(float(values.var(ddof=1)), grain**2 / 12)
    degrees = min(len(values), fewest or len(values)) - 1
    half = float(t.ppf((1 + confidence) / 2, degrees) * np.sqrt(of_unit / len(values) + variance))
    mean = float(values.mean())
    return Interval(mean, mean - half, mean + half)


def over_models(intervals: Sequence[Interval]) -> Interval:
    """The mean of models, or seeds, with its 95% interval; a single one keeps its own.

    intervals: of each, over examples that are the same for all: what they add does not average out over models. The
    half width is the root of the sum of both squares, t times the error over models and 1.96 times that over examples.
    If that of one is unknown, so are the ends.
    """
    if len(intervals) == 1:
        return intervals[0]
    models = mean_interval([interval.value for interval in intervals])
    examples = NORMAL**2 * np.mean([interval.deviation**2 for interval in intervals])
    half = float(np.sqrt((models.high - models.value) ** 2 + examples))
    return Interval(models.value, models.value - half, models.value + half)


def _parts(values: Sequence[Sequence[float]], means_M: np.ndarray, examples: float) -> dict[str, float]:
    """Parts of the variance of the mean. Variance of model means that comes from their seeds counts as seeds."""
    within = [np.var(seeds, ddof=1) for seeds in values if len(seeds) > 1]
    of_seed = float(np.mean(within)) if within else 0.0
    seeds = of_seed * float(np.mean([1 / len(row) for row in values])) / len(values)
    models = max(0.0, float(means_M.var(ddof=1)) / len(values) - seeds) if len(values) > 1 else 0.0
    return {"models": models, "seeds": seeds, "examples": examples}


def _stretched(drawn_R: np.ndarray, units: int) -> np.ndarray:
    """[R]: as far from their mean as a t-interval over the units would be.

    The bootstrap takes the variance of n units as known, and (n - 1) / n of it: with 10 units, 12% of its intervals
    of 95% leave out the truth.
    """
    from scipy.stats import norm, t

    scale = t.ppf(0.975, units - 1) / norm.ppf(0.975) * np.sqrt(units / (units - 1))
    return drawn_R.mean() + scale * (drawn_R - drawn_R.mean())


def _hierarchical(drawn: Sequence[Sequence[np.ndarray]], random: np.random.Generator) -> np.ndarray:
    """[R]: means over resampled models, seeds and examples."""
    resamples = len(drawn[0][0])
    means_MR = np.empty((len(drawn), resamples))
    for model, seeds in enumerate(drawn):
        table_SR = np.stack(seeds)
        chosen_SR = random.integers(0, len(seeds), table_SR.shape)
        means_MR[model] = np.take_along_axis(table_SR, chosen_SR, axis=0).mean(0)
    if len(drawn) == 1:
        return means_MR[0]
    chosen_MR = random.integers(0, len(drawn), means_MR.shape)
    return np.take_along_axis(means_MR, chosen_MR, axis=0).mean(0)
