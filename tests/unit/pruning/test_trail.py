"""A greedy search that goes on from an earlier one takes the heads it would have taken anyway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
import zoo
from headcount import journal
from headcount.pruning.search import Search
from headcount.pruning.trail import Trail, follow
from headcount.record.codec import encode
from tokens import sentences, word_tokenizer

LABELS = [0, 1, 1, 0, 1, 0, 0, 1]


def search() -> Search:
    texts = sentences(len(LABELS), seed=2)
    task = hc.task("classification", texts=texts, labels=LABELS, tokenizer=word_tokenizer())
    return Search(zoo.build("bert"), task, candidates=3)


def test_a_search_resumes_from_a_shorter_one_and_counts_what_that_took(tmp_path: Path) -> None:
    whole, first, second = search(), search(), search()
    steps = follow(Trail(None), whole, [1] * 4)
    follow(Trail(tmp_path / "parts.json"), first, [1] * 2)
    assert len(first.mask.kept) == len(first.mask) - 2
    before = journal.read_json(tmp_path / "parts.json")
    again = follow(Trail(tmp_path / "parts.json"), second, [1] * 4)
    assert second.mask == whole.mask
    assert [replace(step, seconds=0) for step in again] == [replace(step, seconds=0) for step in steps], "losses too"
    saved = journal.read_json(tmp_path / "parts.json")
    assert saved[:2] == before
    assert [step.seconds for step in again] == [step["seconds"] for step in saved]


def test_a_search_for_more_heads_is_read_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(Trail(tmp_path / "steps.json"), search(), [1] * 3)
    monkeypatch.setattr(Search, "steps", lambda *_, **__: pytest.fail("which runs the model"))
    less = search()
    follow(Trail(tmp_path / "steps.json"), less, [1])
    saved = journal.read_json(tmp_path / "steps.json")
    assert len(saved) == 3, "what is known stays known"
    assert [str(head) for head in less.mask.heads if not less.mask[head]] == saved[0]["removed_heads"]


def test_steps_of_other_sizes_are_searched_again(tmp_path: Path) -> None:
    trail, pairs = Trail(tmp_path / "steps.json"), search()
    follow(trail, search(), [1] * 2)
    follow(trail, pairs, [2])
    alone = search()
    follow(Trail(None), alone, [2])
    assert pairs.mask == alone.mask


def test_a_shorter_search_beside_it_takes_nothing_away(tmp_path: Path) -> None:
    """Two processes at two sizes: the one that is behind does not write over what the other found."""
    trail, longer = Trail(tmp_path / "steps.json"), Trail(tmp_path / "longer.json")
    follow(longer, search(), [1] * 3)
    behind = search()
    steps = behind.steps

    def overtaken(*sizes: Any, **options: Any) -> Any:
        journal.write_json(trail.file, encode(longer.read()))  # by another process, after this one looked
        return steps(*sizes, **options)

    behind.steps = overtaken  # type: ignore[method-assign]
    follow(trail, behind, [1] * 2)
    assert len(behind.mask.kept) == len(behind.mask) - 2
    assert trail.read() == longer.read()


def test_a_search_that_is_killed_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, again, trail = search(), search(), Trail(tmp_path / "killed.json")
    follow(Trail(None), whole, [1] * 3)
    screen, runs = Search._screen, iter([True, True, False])

    def killed(*asked: Any) -> Any:
        if not next(runs):
            raise KeyboardInterrupt
        return screen(*asked)

    with monkeypatch.context() as broken:
        broken.setattr(Search, "_screen", killed)
        with pytest.raises(KeyboardInterrupt):
            follow(trail, search(), [1] * 3)
    assert len(trail.read()) == 2
    follow(trail, again, [1] * 3)
    assert again.mask == whole.mask
