"""Which kind of attention can spare the most heads (Michel et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.record import Record
from headcount.record.results.curves import Curve, Curves
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.sections.curves import unharmed
from headcount.report.table import Column, Rows, Table, digits_for, headings
from headcount.statistics import curve_weights


def _by_kind(parts: Curves) -> dict[str, Curve]:
    return {curve.kinds[0]: curve for curve in parts.by_kind or ()}


def _lost_beyond(curve: Curve, knots: Sequence[float], higher_is_better: bool, share: float = 0.6) -> float:
    """Mean loss of the curve with more than this share of the kind removed.

    knots: the shares that all kinds are compared at.
    """
    points = curve.points
    if points[-1].share <= share:
        return 0.0
    weights = curve_weights([point.share for point in points], share, points[-1].share, knots=knots)
    mean = float(weights @ np.array([point.value - points[0].value for point in points]))
    return -mean if higher_is_better else mean


def _worst(parts: Curves) -> str:
    curves = _by_kind(parts)
    knots = [point.share for point in min(curves.values(), key=lambda curve: len(curve.points)).points]
    return max(curves, key=lambda kind: _lost_beyond(curves[kind], knots, parts.higher_is_better))


def _costs_most(parts: Curves) -> str:
    """For certain only if every other kind leads it by the whole interval: one of several alike always costs most."""
    worst, kinds = _worst(parts), _by_kind(parts)
    leads = [lead for lead in parts.leads if lead.second == worst and lead.first in kinds]
    sure = len(leads) == len(kinds) - 1 and all(lead.low > 0 for lead in leads)
    return f"removing {worst} heads {'costs' if sure else 'seems to cost'} most"


def _answer(record: Record[Curves]) -> str:
    parts = record.parts
    shares = [
        f"{100 * unharmed(curve.points, parts.higher_is_better):.0f}% of {kind}"
        for kind, curve in _by_kind(parts).items()
    ]
    return (
        f"Pruned alone, {', '.join(shares)} heads can be removed before {parts.metric} gets measurably "
        f"worse; beyond 60%, {_costs_most(parts)}."
    )


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts.value) for _, record in labelled)

    def rows(record: Record[Curves]) -> Rows:
        return [
            [kind, point.removed, 100 * point.share, point.value, point.low, point.high]
            for kind, curve in _by_kind(record.parts).items()
            for point in curve.points
        ]

    columns = headings(
        "kind", "heads gone", Column("% gone", 0), Column(labelled[0][1].parts.metric, digits), Column("low", digits),
        Column("high", digits),
    )  # fmt: skip
    note = "low, high: 95% interval over examples."
    return [table_of("Each kind pruned alone", labelled, columns, rows, note=note)]


def _printed(record: Record[Curves]) -> list[Printed]:
    value = f"{_worst(record.parts)} attention"
    return [Printed("the kind that suffers most beyond 60%", "cross attention collapses", value)]


SECTION = Section(
    order=32,
    title="Pruning by kind",
    question="Which kind of attention needs its heads most?",
    studies=("curves",),
    parts=("by_kind",),
    command="headcount study curves MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method="As for all heads, but only the heads of one kind of attention are masked.",
    tables=_tables,
    alike=metric_of,
    figures=("pruning-by-kind",),
    printed=_printed,
)
