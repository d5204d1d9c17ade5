"""What grids, scores, roles, sites and records look like in Jupyter: everything is there, and nothing is markup."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import pytest

import headcount as hc
import zoo
from headcount import notebook
from headcount.head_roles.evidence import Evidence
from headcount.head_roles.measure import Roles
from headcount.heads import Head, HeadGrid
from headcount.notebook import Cell, strengths, table
from headcount.record import Record, Signature
from headcount.record.result import Result
from headcount.scores.score import Scores

HOSTILE = "<script>alert('1')</script>&\"x"


class Reader(HTMLParser):
    """Tags, texts and tooltips of a table; tags that are not closed are an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.told: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open.append(tag)
        self.told += [value or "" for name, value in attrs if name == "title"]
        self.styles += [value or "" for name, value in attrs if name == "style" and tag == "td"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(shown: Any) -> Reader:
    return Reader(shown._repr_html_())


RAGGED = [(Head("encoder", 0, 0), 1.0), (Head("encoder", 0, 2), -0.5), (Head("cross", 3, 1), 0.0)]


def test_a_grid_has_a_row_per_site_and_a_column_per_number() -> None:
    found = read(HeadGrid(RAGGED))
    assert "HeadGrid, 3 heads" in found.text
    assert found.rows == [["", "0", "1", "2"], ["encoder.0", "1", "", "-0.5"], ["cross.3", "", "0", ""]]
    assert found.told == ["encoder.0.0: 1", "encoder.0.2: -0.5", "cross.3.1: 0"]


def test_colour_follows_size_and_sign() -> None:
    colours = [style.partition("rgba")[2] for style in read(HeadGrid(RAGGED)).styles]
    assert colours == ["(0,114,178,0.55)", "", "(213,94,0,0.28)", "", "", ""]
    assert strengths([2, -1, 0, float("nan"), float("inf"), "x", None, True]) == [1, -0.5, 0, 0, 0, 0, 0, 0.5]
    assert strengths([]) == []
    assert strengths([0, 0]) == [0, 0]


def test_a_mask_an_empty_grid_and_words() -> None:
    assert read(zoo.build("bert") and hc.locate(zoo.build("bert")).mask(off=["encoder.0.1"])).rows[1][:3] == [
        "encoder.0",
        "1",
        "0",
    ]
    assert "0 heads" in read(HeadGrid([])).text
    assert read(HeadGrid([(Head("encoder", 0, 0), ("a", "b")), (Head("encoder", 0, 1), ())])).rows[1] == [
        "encoder.0",
        "a, b",
        "-",
    ]


def test_scores_say_how_sure_they_are_and_where_they_come_from() -> None:
    def grid(value: float) -> HeadGrid:
        return HeadGrid([(head, value) for head, _ in RAGGED])

    signature = Signature(model="shop/model", arguments={"score": "ablation"})
    found = read(Scores(RAGGED, signature=signature, low=grid(-2), high=grid(3), p=grid(0.25), corrected=grid(1)))
    assert "Scores, 3 heads" in found.text
    assert "higher = keep | model:shop/model|score:ablation" in found.text
    assert found.told[1] == "encoder.0.2: -0.5 (95% -2 to 3), p 0.25, corrected 1"
    assert read(Scores(RAGGED, signature=signature)).told[1] == "encoder.0.2: -0.5"


def test_roles_show_what_holds() -> None:
    def evidence(role: str, label: str, holds: bool) -> Evidence:
        return Evidence(role, label, 0.95, 0.1, 0.9, 0.9, 1.0, 50, holds)

    found = (evidence("positional", "-1", True), evidence("rare", "rarest", False))
    roles = Roles([(Head("encoder", 0, 0), found), (Head("encoder", 0, 1), ())], "object")
    roles.signature, roles.sentences, roles.trees = Signature(model="m"), 60, 40
    shown = read(roles)
    assert shown.rows[1] == ["encoder.0", "positional -1", "-"]
    assert shown.told == ["encoder.0.0: positional -1 0.95 (baseline 0.10)", "encoder.0.1: no role"]
    assert "60 sentences, 40 with trees" in shown.text


def test_sites_say_what_is_left() -> None:
    model = zoo.build("llama")
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.0.*", "decoder.1.0"]))
    found = read(hc.locate(small))
    total = hc.locate(model)[0].num_heads
    assert found.rows[0][1:] == ["heads", "of", "which", "size", "key/value", "family"]
    assert found.rows[1][:4] == ["decoder.0", "0", str(total), "-"]
    assert found.rows[2][:4] == ["decoder.1", str(total - 1), str(total), " ".join(map(str, range(1, total)))]
    assert found.rows[2][-1] == "llama"


@dataclass(frozen=True)
class Sample(Result):
    """A result of every kind of part."""

    metric: str
    value: float
    one_out: dict[str, Any]
    curve: tuple[int, ...]
    gone: dict[str, Any]


def test_a_record_sums_up_its_parts() -> None:
    parts = Sample("BLEU", 30.123456789, dict.fromkeys("abcd"), (1, 2), {})
    found = read(Record("ablate", Signature(model="shop/model", time="2026-01-01"), parts))
    assert "Record of ablate" in found.text
    assert found.rows == [
        ["metric", "BLEU"], ["value", "30.1235"], ["one_out", "4: a, b, c, ..."], ["curve", "a list of 2"],
        ["gone", "none"],
    ]  # fmt: skip
    assert "model:shop/model" in found.text
    assert "2026-01-01" in found.text


@pytest.mark.parametrize(
    "shown",
    [
        HeadGrid([(Head("encoder", 0, 0), HOSTILE)]),
        Scores(RAGGED, signature=Signature(model=HOSTILE)),
        Record(HOSTILE, Signature(model=HOSTILE), Sample(HOSTILE, 1.0, {HOSTILE: 1}, (), {})),
    ],
    ids=["grid", "scores", "record"],
)
def test_text_is_never_markup(shown: Any) -> None:
    html = shown._repr_html_()
    assert "<script" not in html
    assert HOSTILE in read(shown).text
    assert set(read(shown).tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}


def test_long_text_is_cut_and_told_in_full() -> None:
    found = Reader(table("", [], [("row", [Cell("x" * 200)])]))
    assert len(found.rows[0][1]) == notebook._LONGEST
    assert found.told == ["x" * 200]
    below = Reader(table("", [], [], below="y" * 500))
    assert len(below.text) == notebook._LONGEST_BELOW
    assert below.told == ["y" * 500]
