"""Intervals over models and seeds: by hand, and by how often they hold the truth, beside those over examples alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headcount.statistics import NORMAL, Interval, over_models, over_runs


def table(
    random: np.random.Generator, models: int, seeds: int, spread: tuple[float, float, float]
) -> list[list[object]]:
    """Numbers of runs whose true mean is 0, and draws of them; spread: of models, of seeds, of 50 shared examples."""
    of_model, of_seed, of_example = spread
    shared_N = random.normal(0, of_example, 50)
    counts_RN = random.multinomial(50, np.full(50, 1 / 50), size=400)
    values, drawn = [], []
    for _ in range(models):
        level = random.normal(0, of_model)
        runs = [level + random.normal(0, of_seed) for _ in range(seeds)]
        values.append([run + shared_N.mean() for run in runs])
        drawn.append([run + counts_RN @ shared_N / 50 for run in runs])
    return [values, drawn]


def test_few_seeds_by_hand() -> None:
    values = [[-2.4, -1.5, -0.36]]
    drawn = [[np.array([value - 0.3, value + 0.3]) for value in values[0]]]
    found = over_runs(values, drawn, examples=50)
    examples = np.var([-0.3, 0.3], ddof=1)
    half = stats.t.ppf(0.975, 2) * np.sqrt(np.var(values[0], ddof=1) / 3 + examples)
    assert (found.value, found.low, found.high) == pytest.approx((-1.42, -1.42 - half, -1.42 + half))
    assert found.parts == pytest.approx({"models": 0.0, "seeds": np.var(values[0], ddof=1) / 3, "examples": examples})
    assert found.behind == "1 model, 3 seeds: t-interval over seeds, examples included"


def test_few_models_are_the_units_whatever_their_seeds() -> None:
    values = [[1.0, 3.0], [4.0, 4.0]]
    found = over_runs(values, [[np.array([value, value]) for value in row] for row in values], examples=50)
    half = stats.t.ppf(0.975, 1) * np.std([2.0, 4.0], ddof=1) / np.sqrt(2)
    assert (found.value, found.high - found.value) == pytest.approx((3.0, half))
    assert found.parts == pytest.approx({"models": 1.0 - 0.25, "seeds": 0.25, "examples": 0.0})
    assert found.behind == "2 models, 4 seeds in all: t-interval over models, examples included"


def test_one_run_says_that_its_interval_is_of_examples_alone() -> None:
    drawn = stats.norm.ppf(np.linspace(0.0005, 0.9995, 1000))
    found = over_runs([[0.5]], [[0.5 + drawn]], examples=10**6)
    assert (found.low, found.high) == pytest.approx((0.5 - 1.96, 0.5 + 1.96), abs=0.01)
    assert found.behind == "1 model, 1 seed: the interval is over examples alone"


@pytest.mark.parametrize(
    ("models", "seeds"),
    [(1, 3), (4, 1), (3, 3), (1, 15), *(pytest.param(*many, marks=pytest.mark.slow) for many in ((10, 1), (12, 2)))],
)
def test_intervals_hold_the_truth_where_those_over_examples_do_not(models: int, seeds: int) -> None:
    random, inside, over_examples, experiments = np.random.default_rng(0), 0, 0, 300
    spread = (1.0 if models > 1 else 0.0, 1.0, 0.5)
    for number in range(experiments):
        values, drawn = table(random, models, seeds, spread)
        found = over_runs(values, drawn, examples=50, seed=number)
        inside += found.low <= 0 <= found.high
        low, high = np.percentile(np.mean([np.mean(row, axis=0) for row in drawn], axis=0), [2.5, 97.5])
        over_examples += low <= 0 <= high
    assert inside / experiments > 0.92
    assert over_examples / experiments < 0.6


def test_runs_without_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        over_runs([[1.0], []], [[np.ones(2)], []], examples=50)


@pytest.mark.parametrize("number", [2, 5, 9])
@pytest.mark.parametrize("of_models", [0.0, 0.3, 1.0, 3.0])
def test_means_of_models_on_the_same_examples_have_their_interval(number: int, of_models: float) -> None:
    """Of models that are alike, 92% of intervals over models alone left out the truth."""
    random, inside = np.random.default_rng(number), 0
    for _ in range(400):
        means = random.normal() + random.normal(size=number) * of_models
        interval = over_models([Interval(mean, mean - NORMAL, mean + NORMAL) for mean in means])
        inside += interval.low <= 0 <= interval.high
    assert inside >= 0.92 * 400


def test_a_single_model_keeps_its_interval() -> None:
    assert over_models([Interval(0.5, 0.2, 0.9)]) == (0.5, 0.2, 0.9)


def test_if_the_examples_of_one_model_are_unknown_so_is_the_interval() -> None:
    """The interval of three models had no width if one of them had no interval."""
    value, *ends = over_models([Interval(0.5, 0.3, 0.7), Interval(0.5, 0.3, 0.7), Interval(0.5, np.nan, np.nan)])
    assert value == 0.5
    assert np.isnan(ends).all()
