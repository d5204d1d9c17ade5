"""Pruning during training: shares of a score that is above 0, in the text, the table and the figure."""

from __future__ import annotations

from math import isnan

import pytest

import records
from headcount.record.codec import encode
from headcount.report.figures.dynamics import FIGURE
from headcount.report.sections.dynamics import SECTION


@pytest.mark.parametrize("value", [0.0, -0.2])
def test_a_score_that_is_not_above_0_has_no_share_left(value: float) -> None:
    """Earlier versions wrote one: -0.1 of -0.2 was 50%."""
    record = records.dynamics()
    first, *others = encode(record.parts.by_epoch)
    points = [{**point, "value": -0.1, "kept_share": 0.5} for point in first["points"]]
    record = records.changed(record, by_epoch=[{**first, "value": value, "points": points}, *others])
    assert f"the model of epoch {first['epoch']:g} keeps an unknown share of its own" in SECTION.answer(record)
    (table,) = SECTION.tables([("m", record)])
    assert all(isnan(share) for share in table.rows[0][2:])
    assert not any(isnan(share) for share in table.rows[1][2:])
    rows = FIGURE.draw([record]).rows
    assert all(isnan(row["kept_share"]) for row in rows if row["epoch"] == first["epoch"])


def test_a_late_epoch_without_a_score_has_no_share_in_the_comparison_with_the_paper() -> None:
    record = records.dynamics()
    *others, last = encode(record.parts.by_epoch)
    late = {**last, "epoch": 10, "value": 0.0, "points": [{**point, "kept_share": 0.5} for point in last["points"]]}
    record = records.changed(record, by_epoch=[*others, late])
    assert "an unknown share with" in next(row.ours for row in SECTION.printed(record) if "kept with 40%" in row.what)
