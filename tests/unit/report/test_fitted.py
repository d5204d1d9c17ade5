"""Tables for the terminal: wrapped between words or split into blocks of columns, never cut."""

from __future__ import annotations

import pytest
from rich.text import Text

import records
import subjects as made
from headcount.report.fitted import FittedTable
from headcount.report.section import Labelled, Section, labelled_for, ordered
from headcount.report.subject import subjects
from headcount.report.text import terminal_table
from screens import WIDTHS, check_whole, screen


def _sections() -> list[tuple[Labelled, Section]]:
    """All sections with the records that answer them, of one model and of two."""
    one = [*made.everything(made.even(2, 12)), records.dynamics(), records.ablation()]
    found = [subjects(one), subjects([*one, made.ablation(made.even(2, 12), "shop/model-b", seed=9)])]
    return [(labelled_for(section, some), section) for some in found for _, section in ordered()]


def table(columns: int, *, name: str = "encoder.0", **options: object) -> FittedTable:
    shown = FittedTable(**options)  # type: ignore[arg-type]
    shown.add_column("site", no_wrap=True)
    for column in range(columns):
        shown.add_column(f"number {column}", justify="right", no_wrap=True)
    for row in range(2):
        shown.add_row(f"{name}.{row}", *(f"{100 * row + column}.25" for column in range(columns)))
    return shown


@pytest.mark.parametrize("width", [20, *WIDTHS])
@pytest.mark.parametrize("columns", [1, 3, 12, 32])
def test_numbers_stay_whole(width: int, columns: int) -> None:
    check_whole(table(columns), width)


def test_what_fits_is_one_block_and_what_does_not_repeats_the_name_of_the_row() -> None:
    assert len(table(4).blocks(80)) == 1
    blocks = table(12).blocks(40)
    assert len(blocks) > 1
    assert all(block.columns[0] == 0 for block in blocks)
    assert [column for block in blocks for column in block.columns[1:]] == list(range(1, 13))
    lengths = [len(block.columns) for block in blocks]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("width", [20, *WIDTHS])
def test_long_texts_wrap_between_words(width: int) -> None:
    shown = FittedTable(title=Text("A title that is longer than the narrowest terminal"))
    shown.add_column("what the paper says of it")
    shown.add_column("share", justify="right", no_wrap=True)
    shown.add_row("heads that look at one fixed offset are the most confident ones of all", "12.25%")
    check_whole(shown, width)


def test_a_table_that_is_too_wide_even_in_blocks_is_shown_row_by_row() -> None:
    shown = FittedTable(keys=2)
    for column in ("model", "way", "roles before"):
        shown.add_column(column, no_wrap=True)
    shown.add_row("model-a", "rank-gradient/distilled", "positional 3")
    shown.add_row("model-b", "l0", "none")
    assert screen(shown, 80).splitlines()[0].split() == ["model", "way", "roles", "before"]
    check_whole(shown, 40)
    assert [line.split() for line in screen(shown, 40).splitlines()] == [
        ["model", "model-a"], ["way", "rank-gradient/distilled"], ["roles", "before", "positional", "3"], [],
        ["model", "model-b"], ["way", "l0"], ["roles", "before", "none"],
    ]  # fmt: skip


def test_a_path_is_folded() -> None:
    shown = FittedTable()
    shown.add_column("model")
    shown.add_column("value", justify="right", no_wrap=True)
    path = "/".join(["models"] * 12)
    shown.add_row(path, "0.25")
    text = screen(shown, 40)
    assert "\u2026" not in text
    assert path in "".join(line[:35].strip() for line in text.splitlines()[1:]).replace("0.25", "").replace(" ", "")


def test_texts_are_not_markup() -> None:
    assert "[red]x[/]" in screen(table(1, name="[red]x[/]"), 80)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_table_of_the_report(width: int) -> None:
    for labelled, section in _sections():
        for shown in section.tables(labelled) if labelled else ():
            check_whole(terminal_table(shown), width)
