"""Lines: what is text, in every reader that reads lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.corpora.conllu import read_conllu
from headcount.corpora.lines import read_lines
from headcount.corpora.plain import read_plain
from headcount.errors import CorpusError


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\ntwo\n".encode())
    assert read_plain(path) == ["one", "two"]
    bank = tmp_path / "a.conllu"
    bank.write_bytes("\ufeff# text = a\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n".encode())
    assert read_conllu(bank).trees[0].text == "a"


def test_nul_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntw\0o\n")
    with pytest.raises(CorpusError, match=r"a\.txt:2 has a NUL character"):
        read_plain(path)


def test_lines_that_end_in_carriage_returns_only_are_refused(tmp_path: Path) -> None:
    """They would be one text, of which a model reads the beginning."""
    path = tmp_path / "old.txt"
    path.write_bytes(b"one\rtwo\rthree\r")
    with pytest.raises(CorpusError, match=r"old.txt:1 contains the whole file.*carriage returns.*LF or CRLF"):
        read_plain(path)
    path.write_bytes(b"one\rtwo\nthree\r\n")
    assert read_plain(path) == ["one\rtwo", "three"]


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"Cannot read .*: Is a directory"):
        list(read_lines(tmp_path))
