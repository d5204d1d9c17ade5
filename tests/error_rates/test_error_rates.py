"""The promises of docs/results/error-rates.md: every interval has a case, and a broken promise is noticed."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from error_rates import cases as module
from error_rates.cases import Case, cases
from error_rates.rates import page, rate
from headcount import statistics

_PAGE = Path(__file__).parents[2] / "docs" / "results" / "error-rates.md"
_ELSEWHERE = {  # checked by simulation in their own tests
    "anytime_interval": "unit/statistics/test_betting.py",
    "bootstrap_interval": "the metrics call it",
    "mean_interval": "a t-interval, as t_interval is",
    "percentile_intervals": "percentile_interval of each column",
    "paired_shares": "the change of accuracy calls it",
    "share_interval": "accuracy is one",
}


def _quick() -> list[Case]:
    """Cases without a bootstrap."""
    names = ("mean score of a head", "accuracy", "mean share over models", "ratio of speeds")
    return [case for case in cases() if case.number in names]


def test_every_interval_has_a_case() -> None:
    source = inspect.getsource(module)
    intervals = {
        name
        for name, member in vars(statistics).items()
        if inspect.isfunction(member)
        and ("interval" in name or member.__annotations__.get("return") in ("Interval", "Correlation", "Runs"))
    }
    missing = {name for name in intervals - set(_ELSEWHERE) if not re.search(rf"\b{name}\(|: {name}\b", source)}
    assert not missing, "These intervals need a case."


@pytest.mark.parametrize("case", _quick(), ids=lambda case: case.name)
def test_promises_of_quick_cases(case: Case) -> None:
    for size in case.sizes:
        assert not rate(case, size, 100 if case.number == "accuracy" else 300, seed=1).broken


def test_a_broken_promise_is_noticed() -> None:
    """An interval of two standard errors of two models leaves out the truth in 30% of cases."""

    def trial(random: np.random.Generator, size: int) -> bool:
        values = random.normal(size=size)
        half = 2 * values.std(ddof=1) / size**0.5
        return not values.mean() - half <= 0 <= values.mean() + half

    one = rate(Case("mean", "two models", trial, (2,), 0.05), 2, 300, seed=0)
    assert one.broken
    assert 0.2 < one.share < 0.4
    assert not rate(Case("mean", "many models", trial, (60,), 0.07), 60, 300, seed=0).broken


def test_the_page_has_every_case_with_its_promise() -> None:
    never = [replace(case, trial=lambda *_: False, sizes=(9,)) for case in cases()]
    rows = page([rate(case, 9, 1, seed=0) for case in never])
    text = _PAGE.read_text(encoding="utf-8")
    for row in rows[2:]:
        number, population, _, nominal, promise = (cell.strip() for cell in row.strip("|").split("|"))
        pattern = rf"^\| {re.escape(number)} \| {re.escape(population)} \| [^|]+ \| {nominal} \| {promise} \|$"
        assert re.search(pattern, text, re.MULTILINE), f"docs/results/error-rates.md has no row {number}, {population}."
