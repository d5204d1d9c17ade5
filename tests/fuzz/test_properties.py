"""Properties of the readers: what is written is read again, and any bytes end in a result or a clear error."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.readers import READERS
from fuzz.runner import tried_files
from headcount.corpora.conllu import read_conllu
from headcount.corpora.labelled import read_labelled
from headcount.corpora.lines import read_lines
from headcount.corpora.plain import read_plain
from headcount.heads import Head, HeadGrid
from headcount.record import Record, Signature
from headcount.record.results.score import Scoring

QUICK = settings(max_examples=40, deadline=None, derandomize=True, database=None)
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=20)
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\t"), max_size=20)
NAMES = st.text(st.characters(categories=["Ll"]), min_size=1, max_size=5)
HEADS = st.builds(Head, st.sampled_from(["encoder", "decoder", "cross"]), st.integers(0, 99), st.integers(0, 99))
NO_SPACE = "SpaceAfter=No"
READERS_OF_TEXT = [name for name in READERS if name not in ("config", "checkpoint", "record", "manifest")]


def written(name: str, content: bytes) -> Any:
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / name).write_bytes(content)
    return folder


@QUICK
@given(lines=st.lists(LINES, min_size=1), end=st.sampled_from(["\n", "\r\n"]), mark=st.booleans(), last=st.booleans())
def test_lines(lines: list[str], end: str, mark: bool, last: bool) -> None:
    if lines[0].startswith("\ufeff") or not lines[-1]:
        lines = ["first", *lines, "last"]
    text = end.join(lines) + (end if last else "")
    with written("texts.txt", text.encode("utf-8-sig" if mark else "utf-8")) as folder:
        file = Path(folder) / "texts.txt"
        assert list(read_lines(file)) == lines
        texts = [line.strip() for line in lines if line.strip()]
        if texts:
            read = read_plain(file)
            assert (list(read), read.skipped["empty"]) == (texts, len(lines) - len(texts))


@QUICK
@given(rows=st.lists(st.tuples(CELLS, NAMES), min_size=1), as_json=st.booleans())
def test_labels(rows: list[tuple[str, str]], as_json: bool) -> None:
    rows = [("a text", "name"), *rows]
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    table = ["text\tlabel", *("\t".join(row) for row in rows)]
    name, content = ("train.jsonl", lines) if as_json else ("train.tsv", table)
    with written(name, "\n".join(content).encode()) as folder:
        read = read_labelled(Path(folder) / name)
    usable = [(text, label) for text, label in rows if text.strip()]
    assert [(text, read.classes[label]) for text, label in zip(read.texts, read.labels, strict=True)] == usable
    assert sum(read.skipped.values()) == len(rows) - len(usable)


@QUICK
@given(
    forms=st.lists(st.tuples(CELLS.filter(str.strip), st.booleans()), min_size=1, max_size=8),
    parents=st.randoms(use_true_random=False),
)
def test_trees(forms: list[tuple[str, bool]], parents: Any) -> None:
    """Any tree: each word depends on one before it, in an order that is shuffled."""
    order = parents.sample(range(len(forms)), len(forms))
    heads = {order[0]: 0} | {word: 1 + parents.choice(order[:place]) for place, word in enumerate(order) if place}
    lines = [
        "\t".join(
            [str(number + 1), form, *"_X__", str(heads[number]), "dep:x", "_", "_" if spaced else "SpaceAfter=No"]
        )
        for number, (form, spaced) in enumerate(forms)
    ]
    with written("bank.conllu", ("\n".join(lines) + "\n").encode()) as folder:
        (tree,) = read_conllu(Path(folder) / "bank.conllu")
    assert tree.words == tuple(form for form, _ in forms)
    assert [tree.text[start:end] for start, end in tree.spans] == list(tree.words)
    assert tree.heads == tuple(heads[number] - 1 for number in range(len(forms)))
    assert set(tree.relations) == {"dep"}


@QUICK
@given(values=st.dictionaries(HEADS, st.floats() | st.integers(-5, 5), min_size=1))
def test_grids(values: dict[Head, float]) -> None:
    grid = HeadGrid({head: float(value) for head, value in values.items()})
    assert HeadGrid.from_json(grid.to_json()) == grid


@QUICK
@given(values=st.dictionaries(HEADS, st.floats(), min_size=1), model=st.text())
def test_records(values: dict[Head, float], model: str) -> None:
    """Numbers that are not finite are null in the file and NaN here; any text comes back."""
    model = model.encode("utf-8", "replace").decode()
    numbers = {str(head): value for head, value in values.items()}
    record = Record("score", Signature(model), Scoring("gradient", numbers, dict.fromkeys(numbers, 1)))
    read = Record.from_json(record.to_json())
    assert read.signature == record.signature
    for head, value in numbers.items():
        again = read.parts.scores[head]
        assert again == value or (math.isnan(again) and not math.isfinite(value))


@pytest.mark.parametrize("reader", READERS_OF_TEXT)
def test_any_bytes(reader: str) -> None:
    names = list(READERS[reader].seeds()[0])

    @QUICK
    @given(contents=st.tuples(*[st.binary(max_size=60) | st.text(max_size=60).map(_bytes) for _ in names]))
    def check(contents: tuple[bytes, ...]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = tried_files(reader, dict(zip(names, contents, strict=True)), Path(folder) / "case")
        assert not outcome.failure, outcome.failure

    check()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
