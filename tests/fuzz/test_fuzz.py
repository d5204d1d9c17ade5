"""Bad input for every reader: a result that a slow reader confirms, or one clear error."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from fuzz.readers import JSON_LABELLED, LABELLED, PLAIN, READERS, TREES
from fuzz.runner import SECONDS, tried, tried_files

NASTY = Path(__file__).parent.parent / "nasty"
CASES = {name: name.replace(" ", "-") for name in READERS}
SLICE = 120  # mutated cases of a reader, by its share; `make fuzz` tries 100,000 in all
_MEMORY = 40  # bytes for each byte of a file


def nasty() -> list[tuple[str, Path]]:
    return [(name, case) for name, folder in CASES.items() for case in sorted((NASTY / folder).glob("*"))]


@pytest.mark.parametrize(("reader", "case"), nasty(), ids=lambda value: value if isinstance(value, str) else value.name)
def test_nasty_files(reader: str, case: Path, tmp_path: Path) -> None:
    """The name of a case says what comes of it."""
    files = {file.name: file.read_bytes() for file in case.iterdir()}
    outcome = tried_files(reader, files, tmp_path / "case")
    assert not outcome.failure, outcome.failure
    assert outcome.result == case.name.partition("-")[0]


def test_every_file_is_of_a_reader() -> None:
    assert {folder.name for folder in NASTY.iterdir()} <= set(CASES.values())


@pytest.mark.parametrize("reader", READERS)
def test_mutated_files(reader: str, tmp_path: Path) -> None:
    count = max(4, round(SLICE * min(1.0, READERS[reader].share)))
    outcomes = [tried(reader, number, tmp_path / "case") for number in range(count)]
    assert [(outcome.number, outcome.failure) for outcome in outcomes if outcome.failure] == []


@pytest.mark.parametrize(
    ("reader", "name", "text"),
    [
        ("plain text", "texts.txt", PLAIN + "\n"),
        ("labels in a table", "train.tsv", LABELLED),
        ("labels in JSON lines", "train.jsonl", JSON_LABELLED),
        ("CoNLL-U", "bank.conllu", TREES),
    ],
)
def test_time_and_memory_of_a_tenth_of_a_megabyte(reader: str, name: str, text: str, tmp_path: Path) -> None:
    head, _, rest = text.partition("\n")
    content = (
        f"{head}\n" + rest * (100_000 // len(rest.encode()))
        if name == "train.tsv"
        else text * (100_000 // len(text.encode()))
    )
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    tracemalloc.start()
    start = time.process_time()
    try:
        READERS[reader].read(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < SECONDS / 2
    assert peak < _MEMORY * len(content.encode())
