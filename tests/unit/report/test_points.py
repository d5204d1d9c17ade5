"""Points of a trade-off: all heads tuned as long are a control, not a point of the way that made them."""

from __future__ import annotations

import records
from headcount.report.figures.tradeoff import FIGURE
from headcount.report.points import control, smaller
from headcount.report.sections.tradeoff import SECTION


def test_the_control_stands_apart() -> None:
    record = records.tradeoff()
    parts = record.parts
    assert {point["keep"] for point in control(parts)} == {parts["gated"]}
    assert len(smaller(parts)) + len(control(parts)) == len(parts["tradeoff"])
    (plot,) = FIGURE.draw([record]).canvas.axes
    assert str(parts["gated"]) not in [label.get_text() for label in plot.get_xticklabels()]
    assert "all heads, tuned as long" in plot.get_legend_handles_labels()[1]
    assert "rank-gradient" not in SECTION.answer(record).split("against")[0].split("by l0")[0]


def test_alone_it_is_what_there_is() -> None:
    record = records.tradeoff()
    parts = {**record.parts, "tradeoff": control(record.parts)}
    assert smaller(parts) == parts["tradeoff"]
    assert not control(parts)
