"""Batching and the learning rate: pure functions, checked against what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.errors import UsageError
from headcount.training.batching import epoch_steps, padding_share, share
from headcount.training.recipe import Recipe


def lengths(rows: int = 5000, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    source = draw.integers(3, 40, rows)
    return np.stack([source, np.maximum(2, source + draw.integers(-3, 4, rows))], axis=1)


def test_every_row_once() -> None:
    steps = epoch_steps(lengths(), batch=1000, chunk=250, seed=1, epoch=0)
    rows = np.concatenate([chunk for step in steps for chunk in step])
    assert sorted(rows.tolist()) == list(range(5000))


def test_sizes_are_kept() -> None:
    table = lengths()
    steps = epoch_steps(table, batch=1000, chunk=250, seed=1, epoch=0)
    for step in steps:
        for rows in step:
            assert len(rows) * table[rows, 0].max() <= 250
            assert len(rows) * table[rows, 1].max() <= 500
    sizes = [sum(int(table[rows, 0].sum()) for rows in step) for step in steps]
    assert 950 < np.mean(sizes) < 1050
    assert max(sizes) <= 1250


def test_padding_is_small() -> None:
    steps = epoch_steps(lengths(30_000), batch=2000, chunk=2000, seed=0, epoch=0)
    assert padding_share(lengths(30_000), steps) <= 0.05


def test_padding_share_by_hand() -> None:
    table = np.array([[2, 4], [4, 4], [1, 1]])
    assert padding_share(table, [[np.array([0, 1])], [np.array([2])]]) == pytest.approx(1 - 16 / 18)


def test_epochs_and_seeds_differ_and_repeat() -> None:
    def first(seed: int, epoch: int) -> list[int]:
        return epoch_steps(lengths(), batch=500, chunk=500, seed=seed, epoch=epoch)[0][0].tolist()

    assert first(0, 0) == first(0, 0)
    assert first(0, 0) != first(0, 1)
    assert first(0, 0) != first(1, 0)


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_processes_share_a_step(processes: int) -> None:
    for step in epoch_steps(lengths(400), batch=600, chunk=300, seed=0, epoch=0):
        parts = [share(step, rank, processes) for rank in range(processes)]
        assert all(parts)
        rows = np.concatenate([chunk for part in parts for chunk in part])
        assert sorted(rows.tolist()) == sorted(np.concatenate(step).tolist())


def test_a_step_too_small_to_share() -> None:
    with pytest.raises(UsageError, match="cannot be shared by 3 processes"):
        share([np.array([4]), np.array([7])], 0, 3)


def test_a_sentence_longer_than_a_chunk_stands_alone() -> None:
    table = np.array([[500, 500], [3, 3], [3, 3]])
    steps = epoch_steps(table, batch=100, chunk=50, seed=0, epoch=0)
    assert sorted(chunk.tolist() for step in steps for chunk in step)[0] == [0]


def test_wrong_sizes() -> None:
    with pytest.raises(UsageError, match="at most batch"):
        epoch_steps(lengths(), batch=100, chunk=200, seed=0, epoch=0)


def test_rate_is_that_of_the_paper() -> None:
    recipe = Recipe(factor=2.0, warmup=400, steps=10_000)
    for step in (1, 100, 399, 400, 401, 9000):
        expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 400**-1.5)
        assert recipe.learning_rate(step, 512) == pytest.approx(expected)
    assert recipe.learning_rate(400, 512) == max(recipe.learning_rate(step, 512) for step in range(1, 2000))


@pytest.mark.parametrize("kind", [{"factor": 2.0}, {"rate": 3e-3}])
@pytest.mark.parametrize("steps", [300, 40_000])
def test_a_shorter_or_longer_run_has_the_same_peak(kind: dict, steps: int) -> None:
    recipe = Recipe(warmup=800, steps=12_000, **kind)
    other = recipe.with_steps(steps)
    peaks = [max(each.learning_rate(step, 128) for step in range(1, each.warmup + 2)) for each in (recipe, other)]
    assert peaks[1] == pytest.approx(peaks[0])
    assert other.warmup / other.steps == pytest.approx(800 / 12_000, rel=0.02)


def test_cooldown_ends_near_zero() -> None:
    recipe, same = Recipe(warmup=10, steps=1000, cooldown=200), Recipe(warmup=10, steps=1000)
    assert recipe.learning_rate(800, 64) == same.learning_rate(800, 64)
    assert recipe.learning_rate(1000, 64) == pytest.approx(same.learning_rate(1000, 64) / 201)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"steps": 0}, {"epochs": 1, "batch": 0}, {"epochs": 1, "smoothing": 1.0}, {"epochs": 1, "watch": "luck"},
     {"epochs": 1, "cooldown": 5}, {"steps": 5, "cooldown": 6}, {"epochs": 1, "factor": 0.0}],
)  # fmt: skip
def test_recipes_that_cannot_be(wrong: dict) -> None:
    with pytest.raises(UsageError):
        Recipe(**wrong)
