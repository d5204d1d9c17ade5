"""Budgets and rules, by hand and against brute force."""

from __future__ import annotations

import itertools
import random

import pytest

from headcount.errors import UnknownHead, UnknownName, UsageError
from headcount.heads import Head, HeadGrid
from headcount.selection.budget import Budget
from headcount.selection.select import select

SCORES = HeadGrid(
    [(Head("encoder", 0, i), value) for i, value in enumerate((0.9, 0.1, 0.5))]
    + [(Head("encoder", 1, i), value) for i, value in enumerate((0.2, 0.3, 0.05))]
    + [(Head("cross", 0, i), value) for i, value in enumerate((7.0, 0.0))]
)


def kept(**options: object) -> list[str]:
    return [str(head) for head in select(SCORES, **options).kept]  # type: ignore[arg-type]


def test_the_best_stay_wherever_they_are() -> None:
    assert kept(budget=Budget(heads=3)) == ["encoder.0.0", "encoder.0.2", "cross.0.0"]
    assert kept(budget=Budget(heads=0)) == []
    assert len(kept(budget=Budget(share=1))) == 8


def test_the_budget_counts_the_kinds_asked_for_and_the_others_stay() -> None:
    assert kept(budget=Budget(heads=1), kinds=("encoder",)) == ["encoder.0.0", "cross.0.0", "cross.0.1"]
    assert kept(budget=Budget(share=0.5), kinds=("encoder",)) == [
        "encoder.0.0",
        "encoder.0.2",
        "encoder.1.1",
        "cross.0.0",
        "cross.0.1",
    ]


def test_every_layer_can_be_given_its_share() -> None:
    assert kept(budget=Budget(heads=3), at_least=1) == ["encoder.0.0", "encoder.1.1", "cross.0.0"]
    assert kept(budget=Budget(heads=4), kinds=("encoder",), rule="uniform")[:4] == [
        "encoder.0.0", "encoder.0.2", "encoder.1.0", "encoder.1.1",
    ]  # fmt: skip


def test_ties_go_to_the_first() -> None:
    equal = SCORES.map(lambda _: 1.0)
    assert [str(head) for head in select(equal, Budget(heads=2)).kept] == ["encoder.0.0", "encoder.0.1"]


def test_against_brute_force() -> None:
    """No other choice of the same size that obeys the rule has a higher sum."""
    draw = random.Random(0)
    for _ in range(20):
        scores = SCORES.map(lambda _: draw.random())
        for size, least in itertools.product(range(3, 7), (0, 1)):
            chosen = select(scores, Budget(heads=size), at_least=least).kept
            best = max(
                sum(scores[head] for head in choice)
                for choice in itertools.combinations(scores.heads, size)
                if all(sum(head.site == site for head in choice) >= least for site in scores.sites)
            )
            assert sum(scores[head] for head in chosen) == pytest.approx(best)


def test_shares_round_to_the_nearest() -> None:
    assert [Budget(share=share).of(10) for share in (0, 0.04, 0.05, 0.25, 0.44, 1)] == [0, 0, 1, 3, 4, 10]


@pytest.mark.parametrize(
    "given", [{}, {"heads": 1, "share": 0.5}, {"heads": -1}, {"heads": 2.5}, {"share": 1.01}, {"share": float("nan")}]
)
def test_wrong_budgets(given: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Budget(**given)  # type: ignore[arg-type]


def test_wrong_selections() -> None:
    for options, error, message in (
        ({"budget": Budget(heads=9)}, UsageError, "only 8"),
        (
            {"budget": Budget(heads=2), "at_least": 1},
            UsageError,
            "with at least 1 .*nearest number is 3",
        ),
        (
            {"budget": Budget(heads=3), "kinds": ("encoder",), "rule": "uniform"},
            UsageError,
            "layers with the same number in every layer; the nearest number is 2 or 4",
        ),
        ({"budget": Budget(heads=1), "rule": "tops"}, UnknownName, "Did you mean 'top'"),
        ({"budget": Budget(heads=1), "kinds": ("vision",)}, UnknownHead, "vision"),
        ({"budget": Budget(heads=1), "kinds": "encoder"}, UsageError, "list of attention kinds"),
        ({"budget": "50%"}, UsageError, r"must be a Budget, such as hc.Budget\(heads=10\); got '50%'"),
    ):
        with pytest.raises(error, match=message):
            kept(**options)
    with pytest.raises(UsageError, match="NaN"):
        select(SCORES.map(lambda _: float("nan")), Budget(heads=1))


def test_units_stay_or_go_together() -> None:
    values = [5.0, 1.0, 2.0, 2.5, 0.0, 9.0, 3.0, 3.0]  # two layers of two groups: means 3, 2.25; 4.5, 3
    grid = HeadGrid(
        [(Head("decoder", layer, index), values[4 * layer + index]) for layer in (0, 1) for index in range(4)]
    )
    groups = [tuple(Head("decoder", layer, 2 * g + i) for i in (0, 1)) for layer in (0, 1) for g in (0, 1)]

    def kept(**options: object) -> list[str]:
        return [str(head) for head in select(grid, units=groups, **options).kept]  # type: ignore[arg-type]

    assert kept(budget=Budget(heads=2)) == ["decoder.1.0", "decoder.1.1"]
    assert kept(budget=Budget(share=0.5), at_least=1) == ["decoder.0.0", "decoder.0.1", "decoder.1.0", "decoder.1.1"]
    assert kept(budget=Budget(heads=4), rule="uniform") == ["decoder.0.0", "decoder.0.1", "decoder.1.0", "decoder.1.1"]
    with pytest.raises(UsageError, match="layers with whole groups; the nearest number is 2 or 4"):
        kept(budget=Budget(heads=3))
    ragged = [groups[0][:1], *groups[1:]]
    pruned = HeadGrid([(head, value) for head, value in grid.items() if str(head) != "decoder.0.1"])
    assert [str(head) for head in select(pruned, Budget(heads=3), units=ragged).kept] == [
        "decoder.0.0", "decoder.1.0", "decoder.1.1",
    ]  # fmt: skip


@pytest.mark.parametrize("argument", ["units", "groups"])
def test_heads_that_are_in_no_group_are_not_removed_silently(argument: str) -> None:
    grid = HeadGrid([(Head("decoder", 0, index), float(index)) for index in range(4)])
    low, high = grid.heads[:2], grid.heads[2:]
    for groups, message in (
        ([low], "decoder.0.2 has a score and is in 0 of them"),
        ([low, high, high], "decoder.0.2 has a score and is in 2 of them"),
        ([low, high, (Head("decoder", 1, 0),)], "decoder.1.0 has no score and is in 1 of them"),
    ):
        with pytest.raises(UsageError, match=message):
            select(grid, Budget(share=0.5), **{argument: groups})  # type: ignore[arg-type]
