"""A role that was tried too rarely has no verdict, and everything that shows it says so."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import subjects as made
from headcount.record.results.roles import Best, Evidence
from headcount.report.figure import write
from headcount.report.html import page
from headcount.report.text import show
from headcount.report.verdicts import missing_trials, uncertain, undecided, verdict

FEW = "not enough trials (2 of 30)"
FEW_OF_BEST = "not enough trials (fewer than 30 in both halves together)"


def test_words_for_a_verdict() -> None:
    held, refuted, few = (
        Evidence("syntactic", "obj v->o", high, 0.4, 0.5, 0.2, high, 2, holds, excluded=high < 0.5)
        for holds, high in ((True, 1.0), (False, 0.45), (None, 1.0))
    )
    assert [verdict(evidence) for evidence in (held, refuted, few)] == ["yes", "no", FEW]
    assert undecided([few, few]) == [f"syntactic obj v->o: {FEW}"]
    assert undecided([refuted]) == []


def test_a_role_that_more_text_may_show_is_open() -> None:
    """A head with 73 (61 to 83) against 44 was called no head for advmod: its p was not below .05 of 290."""
    unclear, excluded = (
        Evidence("syntactic", "obj v->o", value, 0.44, 0.48, value - 0.1, value + 0.1, 60, False, excluded=value < 0.4)
        for value in (0.73, 0.3)
    )
    assert [verdict(unclear), verdict(excluded)] == ["open", "no"]
    older = replace(excluded, excluded=None)  # its threshold was measured too, by how much is not recorded
    assert [verdict(older), verdict(replace(older, role="rare"))] == ["open", "no"]


def test_the_trials_of_a_half_are_not_compared_with_those_of_a_verdict() -> None:
    """A best head is measured on one half of the sentences: "18 of 30" was said of 29 trials in both."""
    best = Best(
        "syntactic", "obj v->o", 1.0, 0.4, 0.5, 0.9, 1.0, 18, None, kind="encoder", head="encoder.0.0", held_out=True
    )
    assert verdict(best) == "not enough trials (fewer than 30 in both halves together)"
    assert verdict(replace(best, held_out=False)) == "not enough trials (18 of 30)"


def test_the_terminal_says_so() -> None:
    terminal = Console(width=120, file=io.StringIO(), record=True)
    show(terminal, [made.roles(made.even(1, 4))])
    text = " ".join(terminal.export_text().split())
    assert "1 role has fewer than the 30 trials of a verdict (syntactic advmod a->v 2)" in text  # in the answer
    assert f"No verdict: syntactic advmod a->v: {FEW}" in text  # below the roles that are held
    assert "1 more has too few instances" in text
    assert "fewer than 30 in both" in text  # in the table of dependencies


def test_the_page_says_so() -> None:
    text = page([made.roles(made.even(1, 4))])
    assert f"No verdict: syntactic advmod a-&gt;v: {FEW}" in text
    assert f"<td>{FEW_OF_BEST}</td>" in text


@pytest.mark.parametrize(
    ("figure", "column", "few"), [("syntactic-heads", "verdict", FEW_OF_BEST), ("head-roles", "without_verdict", FEW)]
)
def test_the_numbers_of_figures_say_so(figure: str, column: str, few: str, tmp_path: Path) -> None:
    files = {file.suffix: file for file in write(figure, [made.roles(made.even(1, 4))], tmp_path, ["svg"])}
    rows = list(csv.DictReader(files[".csv"].open(encoding="utf-8")))
    assert any(few in row[column] for row in rows)


def test_what_is_close_is_counted() -> None:
    def one(value: float, holds: bool | None) -> Evidence:
        return Evidence("positional", "-1", value, 0.1, 0.9, 0.0, 1.0, 80, holds)

    assert uncertain([one(0.95, False), one(0.95, True), one(0.95, None), one(0.5, False)]) == 1


def test_the_answer_counts_what_more_text_could_decide() -> None:
    few = [Evidence("syntactic", f"r{number}", 1.0, 0.4, 0.5, 0.9, 1.0, number, None) for number in range(5)]
    close = Evidence("positional", "-1", 0.95, 0.1, 0.9, 0.0, 1.0, 80, False)
    assert missing_trials([*few, *few, close]) == (
        "More sentences may show more roles: 5 roles have fewer than the 30 trials of a verdict (syntactic r0 0, "
        "syntactic r1 1, syntactic r2 2 and 2 more); 1 value reaches its threshold, but not for certain "
        "(whole interval, and p below .05 after Holm's correction)."
    )
    assert missing_trials([Evidence("positional", "-1", 0.5, 0.1, 0.9, 0.4, 0.6, 80, False)]) == ""
