"""Speed of several records and models: every point at its batch size, every ratio with what it is relative to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import records
import subjects as made
from headcount.record import Record, Signature
from headcount.report.figure import draw, short_names
from headcount.report.overview import overview
from headcount.report.payload import payload
from headcount.report.section import all_tables
from headcount.report.sections.speed import SECTION
from headcount.report.subject import subjects


def bench(reference: str, other: str, batches: tuple[int, ...] = (1, 2), **parts: Any) -> Record:
    """Two models of 12 and 6 heads, or of as many as heads says; the other is 1.2 times as fast with batch 1."""
    heads = parts.pop("heads", (12, 6))
    rows = [
        {
            "model": name, "what": "reading", "batch": batch, "length": 16, "seconds": 0.1, "shortest": 0.09,
            "longest": 0.12, "per_second": 10.0, "faster": faster, "low": faster - 0.1, "high": faster + 0.1,
        }
        for batch in batches
        for name, faster in ((reference, 1.0), (other, 1.2 + (batch - 1) / 100))
    ]  # fmt: skip
    sizes = {
        name: {**records.size(count), "weight_bytes": 100 * count}
        for name, count in zip((reference, other), heads, strict=True)
    }
    return records.typed(
        "bench", Signature(reference), {"rows": rows, "models": sizes, "threads": 2, "device": "cpu", **parts}
    )


def points(plot: Any) -> dict[str, list[tuple[str, float]]]:
    """label of a line -> the batch size that its points stand at, and their values."""
    ticks = {tick: label.get_text() for tick, label in zip(plot.get_xticks(), plot.get_xticklabels(), strict=True)}
    found = {}
    for line in plot.containers:
        places, values = line.lines[0].get_data()
        nearest = [min(ticks, key=lambda tick: abs(tick - x)) for x in places]
        found[line.get_label()] = [(ticks[tick], round(float(y), 2)) for tick, y in zip(nearest, values, strict=True)]
    return found


def test_every_point_stands_at_its_batch_size() -> None:
    drawing = draw("speed", [bench("a", "small", (2, 1)), bench("a", "tiny", (16, 32))])
    (plot,) = drawing.canvas.axes
    assert [label.get_text() for label in plot.get_xticklabels()] == ["1", "2", "16", "32"]
    assert points(plot) == {"small": [("1", 1.2), ("2", 1.21)], "tiny": [("16", 1.35), ("32", 1.51)]}


def test_one_legend_names_every_model_and_the_caption_says_where_a_bar_is_missing() -> None:
    drawing = draw("speed", [bench("a", "small"), bench("b", "tiny"), bench("b", "small")])
    (legend,) = drawing.canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["small", "tiny"]
    assert "too few repeats" not in drawing.caption
    few = bench("a", "small")
    rows = [{**records.encode(row), "low": None, "high": None} for row in few.parts.rows]
    assert "too few repeats" in draw("speed", [records.changed(few, rows=rows)]).caption


def test_ratios_to_other_models_stand_in_panels_of_their_own() -> None:
    drawing = draw("speed", [bench("a", "small"), bench("b", "small"), bench("a", "tiny")])
    first, second = drawing.canvas.axes
    assert (set(points(first)), set(points(second))) == ({"small", "tiny"}, {"small"})
    assert (first.get_title(), second.get_title()) == ("reading, 16 tokens, against a", "reading, 16 tokens, against b")
    assert drawing.caption.startswith("Speed relative to a and b (dashed)")


def test_runs_on_other_devices_stand_apart() -> None:
    some = [bench("a", "small"), bench("a", "tiny", device="cuda")]
    assert len(draw("speed", some).canvas.axes) == 2
    titles = [table.title for table in all_tables(SECTION, [("first", some[0]), ("second", some[1])])]
    assert titles[:2] == ["Speed side by side, first", "Size, first"]


def test_a_larger_model_is_not_called_the_smaller_one() -> None:
    def tile(record: Record) -> str:
        (subject,) = found = subjects([record])
        return overview(subject, payload(found)["subjects"][0]["heads"])[-1].answer

    assert tile(bench("a", "small")) == (
        "The smaller model that was timed is at best 1.21 times as fast; as the best of 2, it is optimistic."
    )
    larger = bench("small", "shop/a", heads=(6, 12))
    assert tile(larger) == "a is at best 1.21 times as fast as small; as the best of 2, it is optimistic."
    assert SECTION.printed(larger) == []
    slow = [{**row, "faster": 0.9, "low": 0.8, "high": 1.1} for row in records.encode(larger.parts)["rows"]]
    assert "nothing certain is gained" not in SECTION.answer(records.changed(larger, rows=slow))


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (["shop/a", "b/"], ["a", "b"]),
        (["x/half", "y/half", "z/whole"], ["x/half", "y/half", "whole"]),
        (["one/x/half", "two/x/half", "half"], ["one/x/half", "two/x/half", "half"]),
        (["a", "a/"], ["a", "a/"]),
    ],
)
def test_names_are_as_short_as_they_differ(models: list[str], names: list[str]) -> None:
    assert list(short_names(models).values()) == names


def test_models_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    record = bench("x/half", "y/half")
    assert "y/half is faster" in SECTION.answer(record)
    table, sizes = all_tables(SECTION, [("half", record)])[:2]
    assert [row[0] for row in table.rows[:2]] == ["x/half", "y/half"]
    assert [row[0] for row in sizes.rows] == ["x/half", "y/half"]
    assert list(points(draw("speed", [record]).canvas.axes[0])) == ["y/half"]
    assert {row["model"] for row in payload(subjects([record]))["subjects"][0]["speed"]} == {"x/half", "y/half"}


def test_an_export_has_no_heads_to_compare() -> None:
    record = bench("a", "a.onnx", heads=(12, 12))
    models = records.encode(record.parts)["models"]
    exported = records.changed(record, models={**models, "a.onnx": {**models["a.onnx"], "stated_heads": None}})
    timed = payload(subjects([exported, made.curves(made.ONE_LAYER, "a")]))["subjects"][0]["speed"]
    assert {row["model"] for row in timed} == {"a"}


def test_the_gain_of_a_runtime_is_not_that_of_removed_heads() -> None:
    export = records.changed(bench("a", "graph"))
    sizes = {name: records.encode(size) for name, size in export.parts.models.items()}
    sizes["graph"]["stated_heads"] = None
    assert SECTION.printed(bench("a", "small"))
    assert not SECTION.printed(records.changed(export, models=sizes))


def test_a_faster_export_is_a_gain_though_it_is_not_smaller() -> None:
    """ "Nothing certain is gained" stood before "bert.onnx is faster in 2 of 2 settings"."""
    first = bench("a", "small")
    rows = [{**records.encode(row), "low": 0.9, "high": 1.3} for row in first.parts.rows]
    rows += [{**row, "model": "graph", "low": 2.0, "high": 2.2} for row in rows if row["model"] == "small"]
    sizes = {name: records.encode(size) for name, size in first.parts.models.items()}
    graph = {**sizes["a"], "stated_heads": None, "weight_bytes": sizes["a"]["weight_bytes"] + 1}
    answer = SECTION.answer(records.changed(first, rows=rows, models={**sizes, "graph": graph}))
    assert "graph is faster in 2 of 2 settings" in answer
    assert "Nothing certain is gained" not in answer


def test_several_smaller_models_without_a_gain_are_said_once() -> None:
    first = bench("a", "small")
    rows = [{**records.encode(row), "low": 0.9, "high": 1.3} for row in first.parts.rows]
    rows += [{**row, "model": "tiny"} for row in rows if row["model"] == "small"]
    sizes = {name: records.encode(size) for name, size in first.parts.models.items()}
    record = records.changed(first, rows=rows, models={**sizes, "tiny": sizes["small"]})
    answer = SECTION.answer(record)
    assert answer.startswith("Nothing certain is gained: small is faster in 0 of 2 settings")
    assert answer.lower().count("nothing certain is gained") == 1
    (subject,) = subjects([record])
    answers = " ".join(tile.answer for tile in overview(subject, payload([subject])["subjects"][0]["heads"]))
    assert "None of the smaller models that were timed is faster for certain in any setting." in answers
