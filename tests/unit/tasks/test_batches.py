"""Batches are made when asked for, and know how many they are."""

from __future__ import annotations

from headcount.scores.pieces import summed
from headcount.tasks.batch import Batches


def test_batches_are_made_one_by_one_and_counted() -> None:
    made: list[int] = []

    def make(rows: list[int]) -> int:
        made.append(sum(rows))
        return sum(rows)

    batches = Batches(make, [[1, 2], [3], [4]])
    assert (len(batches), made) == (3, [])
    assert next(batches) == 3
    assert made == [3]
    assert (list(batches), len(batches)) == ([3, 4], 3)


def test_work_on_batches_says_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    found = summed(Batches(sum, [[1, 2], [3]]), lambda batch: {"n": batch}, progress=lambda *at: told.append(at))
    assert found["n"] == 6
    assert told == [("batches", 0, 2), ("batches", 1, 2), ("batches", 2, 2)]
    plain: list[tuple[str, int, int]] = []
    summed(iter([1, 2, 3]), lambda batch: {"n": batch}, progress=lambda *at: plain.append(at))
    assert plain == [("batches", done, 3) for done in (0, 1, 2, 3)]
