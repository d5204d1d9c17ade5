"""Points of a trade-off: all heads tuned as long are a control, not a point of the way that made them."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

import records
from headcount import metrics
from headcount.record import Record
from headcount.record.codec import encode
from headcount.record.result import Quality
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.figure import fitting, write_all
from headcount.report.figures.kept_roles import FIGURE as ROLES
from headcount.report.figures.tradeoff import FIGURE
from headcount.report.points import ENDS, control, mean_quality, shown_way, smaller, way_heading
from headcount.report.sections.all_kinds import SECTION as ALL_KINDS
from headcount.report.sections.tradeoff import SECTION
from headcount.statistics import Interval
from headcount.tasks.translation.bleu import METRIC as BLEU
from records import difference


def test_the_control_stands_apart() -> None:
    record = records.tradeoff()
    parts = record.parts
    assert {point.keep for point in control(parts)} == {parts.gated}
    assert len(smaller(parts)) + len(control(parts)) == len(parts.points)
    (plot,) = FIGURE.draw([record]).canvas.axes
    assert str(parts.gated) not in [label.get_text() for label in plot.get_xticklabels()]
    assert "all heads, tuned as long" in plot.get_legend_handles_labels()[1]
    assert "rank-gradient" not in SECTION.answer(record).split("against")[0].split("by l0")[0]


def test_the_caption_has_the_steps_of_every_panel() -> None:
    one, other = records.tradeoff(), records.tradeoff()
    assert "has 600 training steps, scratch 2400" in FIGURE.draw([one, other]).caption
    other = records.changed(other, steps={"tuned": 8000, "scratch": 2400}, distill=0.5)
    caption = FIGURE.draw([one, other]).caption
    assert "has 600, 8000 training steps, scratch 2400" in caption
    assert "distilled: the distillation loss (the whole model's predictions) has a weight of 0.5" in caption


def test_alone_it_is_what_there_is() -> None:
    record = records.tradeoff()
    parts = replace(record.parts, points=tuple(control(record.parts)))
    assert smaller(parts) == list(parts.points)
    assert not control(parts)


def test_before_a_point_is_finished_there_is_nothing_to_draw_of_points(tmp_path: Path) -> None:
    record = records.tradeoff()
    assert {"tradeoff", "tradeoff-time", "kept-by-kind", "kept-by-layer", "kept-roles"} <= {*fitting(record)}
    begun = replace(record, parts=replace(record.parts, points=(), unfinished=4))  # other processes are at all points
    assert "no point of the trade-off is finished yet" in str(FIGURE.lacks(begun))
    assert [file.stem for file in write_all(begun, tmp_path, ("svg",)) if file.suffix == ".svg"] == ["hard-concrete"]


def test_models_of_gates_are_looked_at_first() -> None:
    parts = records.tradeoff().parts

    def of_ways(*ways: str) -> Tradeoff:
        return replace(parts, points=tuple(replace(parts.points[0], way=way) for way in ways))

    assert shown_way(of_ways("rank-gradient", "l0/distilled", "random")) == "l0/distilled"
    assert shown_way(of_ways("rank-gradient", "l0/distilled", "random", "l0")) == "l0"
    assert shown_way(of_ways("rank-gradient", "random")) == "rank-gradient"


def test_the_mean_over_seeds_is_within_what_the_metric_can_be() -> None:
    point = records.tradeoff().parts.points[0]

    def mean(metric: str, *values: float) -> Interval:
        after = [Quality(metric, value, value - 0.05, value + 0.05) for value in values]
        return mean_quality([replace(point, after=quality) for quality in after])

    assert mean("accuracy", 0.97, 1.0).high == 1.0
    assert mean("acc_norm", 0.97, 1.0).high > 1.0  # of another program: its ends are not known
    assert mean("F1", 0.0, 0.03).low == 0.0
    assert mean("Matthews", -1.0, -0.96).low == -1.0
    assert mean("perplexity", 1.0, 1.01).low == 1.0
    assert mean("BLEU", 99.99, 99.0).high == 100.0


def test_what_metrics_can_be_is_what_they_say() -> None:
    every_metric = [value for value in vars(metrics).values() if isinstance(value, metrics.Metric)]
    ends = {metric.name: (metric.lowest, metric.highest) for metric in (*every_metric, BLEU)}
    assert {**dict.fromkeys(ends, (-inf, inf)), **ENDS} == ends


def test_comparisons_stand_one_a_row_by_what_they_are_with() -> None:
    record = records.tradeoff()
    l0 = {"way": "l0", "keep": 8, "seeds": [0, 1], "lost": difference(-1.0), "lost_tuned": difference(-2.0)}
    rank = {"way": "rank-gradient", "keep": 8, "seeds": [0, 1], "lost": difference(-3.0)}
    compared = [{**l0, "against": difference(2.0)}, rank]
    record = records.changed(record, compared=compared, against="rank-gradient")
    table = next(one for one in SECTION.tables([("m", record)]) if one.title.startswith("Ways compared"))
    assert [row[:4] for row in table.rows] == [
        ["all heads", "l0", 8, -1.0],
        ["all heads", "rank-gradient", 8, -3.0],
        ["all heads, tuned as long", "l0", 8, -2.0],
        ["rank-gradient, as many heads", "l0", 8, 2.0],
    ]
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_several_seeds_of_all_kinds_are_told_apart() -> None:
    record = records.tradeoff(kinds=True)
    rows = encode(record.parts.all_kinds)
    again = [{**row, "seed": 1, "scratch": records.measured(27.0)} for row in rows]
    record = records.changed(record, all_kinds=sorted([*rows, *again], key=lambda row: -row["keep"]))
    said = ALL_KINDS.answer(record)
    assert "mean of 2 runs" in said
    assert "26.00 trained from scratch" in said
    (table,) = ALL_KINDS.tables([("model-a", record)])
    assert {row[1] for row in table.rows} == {None, 0, 1}  # seeds
    assert "(seed 1)" in " ".join(str(line.ours) for line in ALL_KINDS.printed(record))


def test_nothing_is_said_of_training_from_scratch_that_did_not_happen() -> None:
    """The column had a number of steps, and no value."""
    record = records.tradeoff(kinds=True)
    rows = [{**row, "scratch": None} for row in encode(record.parts.all_kinds)]
    (table,) = ALL_KINDS.tables([("model-a", records.changed(record, all_kinds=rows))])
    assert "scratch" not in " ".join([table.note, *(column.name for column in table.columns)])
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_headings_say_how_long_scratch_and_gates_had() -> None:
    record = records.tradeoff(kinds=True)
    assert "from scratch (2400 steps)" in _headings(record)
    steps = {"tuned": 600, "scratch": 700, "gates": 150, "whole": 2600}
    assert "from scratch (700 of the model's 2600 steps)" in _headings(records.changed(record, steps=steps))
    hurried = records.changed(record, steps=steps)
    assert " trained from scratch (700 of the model's 2600 steps) with the same heads" in ALL_KINDS.answer(hurried)
    assert " by scratch (700 of the model's 2600 steps)" in SECTION.answer(hurried)
    printed = next(line.ours or "" for line in ALL_KINDS.printed(hurried) if "from trained" in line.what)
    assert printed.startswith("pruned | from scratch (700 of the model's 2600 steps): ")
    assert printed.endswith(" BLEU")
    points = encode(record.parts.points)
    for settled, heading in ((0.95, "l0"), (0.62, "l0 (150 steps, 62% settled)")):
        gates = {"settled": settled, "reached": None, "cut_by_rank": 3}
        gated = [{**point, "gates": gates} if point["way"] == "l0" else point for point in points]
        changed = records.changed(record, steps=steps, points=gated)
        assert way_heading(changed.parts, "l0") == heading
        assert f" heads left by {heading}, " in ALL_KINDS.answer(changed)
        assert f"by {heading}, " in SECTION.answer(changed)
        (table,) = ALL_KINDS.tables([("model-a", changed)])
        assert heading in {row[2] for row in table.rows}


def _headings(record: Record) -> list[str]:
    (table,) = ALL_KINDS.tables([("model-a", record)])
    return [column.name for column in table.columns]


def test_the_legend_of_roles_fits_its_figure() -> None:
    canvas = ROLES.draw([records.tradeoff()]).canvas
    canvas.draw_without_rendering()
    (legend,) = canvas.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= canvas.bbox.x1


def test_seconds_are_written_alike() -> None:
    record = records.tradeoff()
    spent = (0.04, 0.2, 1.0, 3600.4)
    points = [
        replace(point, seconds=replace(point.seconds, total=total))
        for point, total in zip(record.parts.points, spent, strict=False)
    ]
    table, *_ = SECTION.tables([("model-a", records.changed(record, points=encode(points)))])
    place = [column.name for column in table.columns].index("seconds")
    assert {table.columns[place].text(row[place]) for row in table.rows} == {"0.0", "0.2", "1.0", "3600.4"}


def test_bars_of_several_seeds_cover_the_seeds() -> None:
    """Three seeds of 93.2, 87.8 and 86.8 were drawn with the mean of their intervals over examples."""
    point = next(point for point in records.tradeoff().parts.points if point.after)
    seeds = [
        replace(point, seed=seed, after=Quality("BLEU", value, value - 1.5, value + 1.5))
        for seed, value in enumerate((93.2, 87.8, 86.8))
    ]
    mean = mean_quality(seeds)
    over_seeds = 4.3027 * float(np.std([93.2, 87.8, 86.8], ddof=1)) / 3**0.5  # Student's t, two degrees of freedom
    half = (over_seeds**2 + 1.5**2) ** 0.5
    assert mean == pytest.approx((89.2667, 89.2667 - half, 89.2667 + half), abs=1e-3)
    assert mean_quality(seeds[:1]) == (93.2, 91.7, 94.7)
    alike = [replace(point, after=Quality("BLEU", 90.0, 88.5, 91.5))] * 3
    assert mean_quality(alike) == pytest.approx((90.0, 88.5, 91.5))
