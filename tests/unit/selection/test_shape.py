"""Shapes: the best heads in a shape against brute force, which numbers are possible, and text forms."""

from __future__ import annotations

import itertools
import random

import pytest

from headcount.errors import UnknownName, UsageError
from headcount.heads import Head, HeadGrid
from headcount.selection.budget import Budget
from headcount.selection.layers import Layers
from headcount.selection.select import select
from headcount.selection.shape import FREE, Shape

SHAPES = [
    Shape(**{**dict(zip(("rule", "groups", "unit"), words, strict=True)), **numbers})
    for words in itertools.product(("top", "uniform"), ("any", "even"), ("head", "group"))
    for numbers in ({}, {"at_least": 1}, {"at_least_first": 2}, {"multiple": 2}, {"multiple": 3, "at_least": 2})
]


def grouped(*sizes: tuple[int, ...]) -> list[tuple[Head, ...]]:
    """Groups of so many heads, layer by layer."""
    groups = []
    for layer, of_layer in enumerate(sizes):
        indices = iter(range(sum(of_layer)))
        groups += [tuple(Head("decoder", layer, next(indices)) for _ in range(size)) for size in of_layer]
    return groups


PAIRS, TRIPLES = grouped((2, 2), (2, 2), (2, 2)), grouped((3, 3), (3, 3))
SMALL = [grouped((2, 2), (2, 2)), grouped((3, 3), (2,)), grouped((1, 1, 1), (1, 1), (1,)), grouped((3, 1, 2), (1,))]


def feasible(shape: Shape, groups: list[tuple[Head, ...]]) -> dict[int, list[tuple[Head, ...]]]:
    """Every set of heads that has the shape, by the number of its heads: all sets are tried."""
    heads = [head for group in groups for head in group]
    sets: dict[int, list[tuple[Head, ...]]] = {}
    for count in range(len(heads) + 1):
        for chosen in itertools.combinations(heads, count):
            mask = HeadGrid([(head, int(head in chosen)) for head in heads])
            if not shape.violations(mask, groups):
                sets.setdefault(count, []).append(chosen)
    return sets


@pytest.mark.parametrize("groups", SMALL, ids=lambda groups: str([len(group) for group in groups]))
def test_the_best_heads_in_every_shape_against_brute_force(groups: list[tuple[Head, ...]]) -> None:
    draw = random.Random(len(groups))
    heads = [head for group in groups for head in group]
    for shape in SHAPES:
        sets = feasible(shape, groups)
        layers = Layers(tuple(groups), shape)
        assert layers.counts == tuple(sorted(sets)), shape
        scores = HeadGrid([(head, draw.gauss(0, 1)) for head in heads])
        for count, choices in sets.items():
            mask = select(scores, Budget(heads=count), shape=shape, groups=groups)
            assert len(mask.kept) == count
            assert not shape.violations(mask, groups), shape
            best = max(sum(scores[head] for head in choice) for choice in choices)
            assert sum(scores[head] for head in mask.kept) == pytest.approx(best), (shape, count)


@pytest.mark.parametrize("scale", [1.0, 1e-14, 1e-200, 1e14])
def test_the_best_heads_are_the_same_in_every_unit_of_the_scores(scale: float) -> None:
    """Ties are relative: Fisher information of a confident classifier is 1e-14."""
    groups = SMALL[0]
    draw = random.Random(0)
    scores = HeadGrid([(head, draw.gauss(0, 1)) for group in groups for head in group])
    for shape in SHAPES:
        for count, choices in feasible(shape, groups).items():
            mask = select(scores.map(lambda value: value * scale), Budget(heads=count), shape=shape, groups=groups)
            assert mask.kept == max(choices, key=lambda choice: sum(scores[head] for head in choice)), (shape, count)


@pytest.mark.parametrize("scale", [1.0, 1e-14])
def test_sums_that_cancel_are_equal_up_to_rounding(scale: float) -> None:
    """0.1 + 0.2 - 0.3 is 6e-17: its size says nothing of how well it is known."""
    groups = grouped((2,), (2,), (2,))
    values = [scale * value for value in (0.1, 0.2, -0.3, 0.0, 0.15, 0.15)]
    scores = HeadGrid(zip([head for group in groups for head in group], values, strict=True))
    mask = select(scores, Budget(heads=4), shape=Shape(unit="group", multiple=2), groups=groups)
    assert [head.layer for head in mask.kept] == [0, 0, 2, 2]
    mask = select(scores, Budget(heads=2), shape=Shape(unit="group", multiple=2), groups=groups)
    assert [head.layer for head in mask.kept] == [0, 0], "the first of 0.1 + 0.2 and 0.15 + 0.15"


@pytest.mark.parametrize("infinite", [float("inf"), float("-inf")])
def test_infinite_scores_come_first_or_last_in_every_shape(infinite: float) -> None:
    """The number of infinite scores decides, then the sum of all others."""
    groups = SMALL[0]
    draw = random.Random(1)
    certain = {groups[1][0], groups[2][1]}
    finite = HeadGrid([(head, draw.gauss(0, 1)) for group in groups for head in group])
    scores = finite.replace(dict.fromkeys(certain, infinite))
    for shape in SHAPES:
        for count, choices in feasible(shape, groups).items():

            def worth(choice: tuple[Head, ...]) -> tuple[float, float]:
                number = len(certain.intersection(choice))
                rest = sum(finite[head] for head in choice if head not in certain)
                return (number if infinite > 0 else -number), rest

            mask = select(scores, Budget(heads=count), shape=shape, groups=groups)
            assert worth(mask.kept) == pytest.approx(max(map(worth, choices))), (shape, count)


@pytest.mark.parametrize("shape", SHAPES[::3], ids=str)
def test_a_number_that_cannot_be_is_refused_with_the_nearest_and_a_share_takes_it(shape: Shape) -> None:
    groups = TRIPLES
    counts = Layers(tuple(groups), shape).counts
    scores = HeadGrid([(head, 1.0) for group in groups for head in group])
    for wanted in set(range(1, 13)) - set(counts):
        neighbours = [n for n in counts if n < wanted][-1:] + [n for n in counts if n > wanted][:1]
        message = f"{wanted} of 12 heads in 2 layers .*nearest number is {' or '.join(map(str, neighbours))}.$"
        with pytest.raises(UsageError, match=message):
            select(scores, Budget(heads=wanted), shape=shape, groups=groups)
        taken = len(select(scores, Budget(share=wanted / 12), shape=shape, groups=groups).kept)
        assert taken == min((n for n in counts if n), key=lambda number: abs(number - wanted))


def test_a_shape_that_nothing_has_is_refused() -> None:
    groups = TRIPLES
    scores = HeadGrid([(head, 1.0) for group in groups for head in group])
    with pytest.raises(UsageError, match="No number of heads fits at least 7 in every layer"):
        select(scores, Budget(share=0.5), at_least=7)
    with pytest.raises(UsageError, match="even groups needs groups="):
        select(scores, Budget(share=0.5), shape=Shape(groups="even"))


def test_ties_go_to_the_first_heads_in_every_shape() -> None:
    groups = PAIRS
    scores = HeadGrid([(head, 0.1) for group in groups for head in group])
    mask = select(scores, Budget(heads=4), shape=Shape(groups="even"), groups=groups)
    assert [str(head) for head in mask.kept] == [f"decoder.0.{index}" for index in range(4)]


def test_costs_are_met_by_the_most_heads_that_the_shape_allows() -> None:
    groups = PAIRS
    scores = HeadGrid([(head, float(head.index)) for group in groups for head in group])
    mask = select(
        scores, Budget(parameters=70), shape=Shape(rule="uniform", unit="group"), groups=groups,
        price=lambda grid: 10.0 * len(grid.kept),
    )  # fmt: skip
    assert len(mask.kept) == 6, "7 heads could be paid for, 6 have the shape"


def test_heads_that_can_still_be_brought_into_shape() -> None:
    layers = Layers(tuple(PAIRS), Shape(groups="even", at_least=1))
    heads = {head for group in PAIRS for head in group}
    assert layers.reaches(heads, 12)
    broken = heads - {Head("decoder", 0, 0)}
    assert not layers.reaches(broken, 11), "groups of 1 and 2"
    assert layers.reaches(broken, 10)
    assert not layers.reaches({head for head in heads if head.layer}, None), "the first layer has no head"


def test_a_shape_is_read_as_it_is_written() -> None:
    for shape in SHAPES:
        assert Shape.parse(str(shape)) == shape
        assert shape.and_also(FREE) == shape == FREE.and_also(shape)


def test_shapes_that_are_not_understood() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'even'"):
        Shape.parse("evn")
    with pytest.raises(UnknownName, match="constraint 'multiple=x'"):
        Shape.parse("multiple=x")
    with pytest.raises(UsageError, match="multiple must be a whole number, 1 or more"):
        Shape(multiple=0)


def test_constraints_of_two_shapes_hold_together() -> None:
    both = Shape(multiple=4, at_least=1).and_also(Shape(multiple=6, groups="even", at_least_first=2))
    assert both == Shape(multiple=12, at_least=1, at_least_first=2, groups="even")


def test_a_mask_that_breaks_a_shape_is_refused_with_the_layer() -> None:
    groups = TRIPLES
    gone = {Head("decoder", 1, 0)}
    mask = HeadGrid([(head, int(head not in gone)) for group in groups for head in group])
    for shape, message in (
        (Shape(groups="even"), "decoder.1 keeps 2, 3 heads of its groups"),
        (Shape(rule="uniform"), "decoder.. keeps . heads where other layers keep ."),
        (Shape(at_least=6), "decoder.1 keeps 5 heads, fewer than 6"),
        (Shape(multiple=2), "decoder.1 keeps 5 heads, no multiple of 2"),
        (Shape(unit="group"), "decoder.1 keeps a part of a group"),
    ):
        with pytest.raises(UsageError, match=message):
            shape.check(mask, groups)
    Shape(at_least_first=6, at_least=5).check(mask, groups)
