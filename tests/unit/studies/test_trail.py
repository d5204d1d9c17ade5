"""A greedy search that goes on from an earlier one takes the heads it would have taken anyway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headcount as hc
import zoo
from headcount import journal
from headcount.methods.greedy import Search
from headcount.studies.trail import follow
from tokens import sentences, word_tokenizer

LABELS = [0, 1, 1, 0, 1, 0, 0, 1]


def search(**options: Any) -> Search:
    texts = sentences(len(LABELS), seed=2)
    task = hc.task("classification", texts=texts, labels=LABELS, tokenizer=word_tokenizer())
    return Search(zoo.build("bert"), task, candidates=3, **options)


def test_a_search_goes_on_from_a_shorter_one_and_knows_what_that_took(tmp_path: Path) -> None:
    at_once, none = follow(tmp_path / "once.json", search, 4)
    assert none == 0.0
    first, _ = follow(tmp_path / "parts.json", search, 2)
    assert len(first.kept) == len(first) - 2
    second, earlier = follow(tmp_path / "parts.json", search, 4)
    assert second == at_once
    steps = journal.read_json(tmp_path / "parts.json")
    assert earlier == sum(step["seconds"] for step in steps[:2]) > 0
    assert [step["head"] for step in steps] == [step["head"] for step in journal.read_json(tmp_path / "once.json")]


def test_a_search_for_more_heads_is_read_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _ = follow(tmp_path / "steps.json", search, 3)
    seen: list[Any] = []
    monkeypatch.setattr(Search, "steps", lambda *asked: seen.append(asked))  # which runs the model
    less, _ = follow(tmp_path / "steps.json", search, 1)
    assert not seen
    heads = [step["head"] for step in journal.read_json(tmp_path / "steps.json")]
    assert len(heads) == 3, "what is known stays known"
    assert [str(head) for head in less.heads if not less[head]] == heads[:1]


def test_a_shorter_search_beside_it_takes_nothing_away(tmp_path: Path) -> None:
    """Two processes at two sizes: the one that is behind does not write over what the other found."""
    file, other = tmp_path / "steps.json", tmp_path / "other.json"
    follow(other, search, 3)

    def overtaken(**options: Any) -> Search:
        journal.write_json(file, journal.read_json(other))  # by another process, after this one looked
        return search(**options)

    mask, _ = follow(file, overtaken, 2)
    assert len(mask.kept) == len(mask) - 2
    assert journal.read_json(file) == journal.read_json(other)


def test_a_search_that_is_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = follow(tmp_path / "whole.json", search, 3)
    screen, runs = Search._screen, iter([True, True, False])

    def killed(*asked: Any) -> Any:
        if not next(runs):
            raise KeyboardInterrupt
        return screen(*asked)

    with monkeypatch.context() as broken:
        broken.setattr(Search, "_screen", killed)
        with pytest.raises(KeyboardInterrupt):
            follow(tmp_path / "killed.json", search, 3)
    assert len(journal.read_json(tmp_path / "killed.json")) == 2
    again, _ = follow(tmp_path / "killed.json", search, 3)
    assert again == whole
