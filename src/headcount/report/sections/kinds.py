"""Which kind of attention can spare the most heads (Michel et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.record import Record
from headcount.record.results.curves import Curve, Curves
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.sections.curves import limit, unharmed_text
from headcount.report.table import Column, Rows, Table, digits_for, headings, listed
from headcount.statistics import curve_weights


def _by_kind(parts: Curves) -> dict[str, Curve]:
    return {curve.kinds[0]: curve for curve in parts.by_kind or ()}


_BEYOND = 0.6  # share of the heads of a kind


def _lost_beyond(curve: Curve, knots: Sequence[float], higher_is_better: bool) -> float:
    """Mean loss of the curve with more than _BEYOND of the kind removed.

    knots: the shares that all kinds are compared at.
    """
    points = curve.points
    weights = curve_weights([point.share for point in points], _BEYOND, points[-1].share, knots=knots)
    mean = float(weights @ np.array([point.value - points[0].value for point in points]))
    return -mean if higher_is_better else mean


def _worst(parts: Curves) -> str | None:
    """The kind that costs most beyond 60% of its heads; None if a kind was not pruned as far, or if none costs any."""
    curves = _by_kind(parts)
    if any(curve.points[-1].share <= _BEYOND for curve in curves.values()):
        return None
    knots = [point.share for point in min(curves.values(), key=lambda curve: len(curve.points)).points]
    lost = {kind: _lost_beyond(curve, knots, parts.higher_is_better) for kind, curve in curves.items()}
    worst = max(lost, key=lambda kind: lost[kind])
    return worst if lost[worst] > 0 else None


def _costs_most(parts: Curves) -> str:
    """For certain only if every other kind leads it by the whole interval: one of several alike always costs most.

    Empty if there is none.
    """
    worst, kinds = _worst(parts), _by_kind(parts)
    if worst is None:
        return ""
    leads = [lead for lead in parts.leads if lead.second == worst and lead.first in kinds]
    sure = len(leads) == len(kinds) - 1 and all(lead.low > 0 for lead in leads)
    return f"; beyond 60%, removing {worst} heads {'costs' if sure else 'seems to cost'} most"


def _answer(record: Record[Curves]) -> str:
    parts = record.parts
    curves = _by_kind(parts)
    shares = [f"{unharmed_text(curve.points, parts.higher_is_better)} of {kind}" for kind, curve in curves.items()]
    beyond = limit(next(iter(curves.values())).points)
    return f"Pruned alone, {listed(shares)} heads can be removed before {parts.metric} {beyond}{_costs_most(parts)}."


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
    worst = _worst(record.parts)
    value = f"{worst} attention" if worst else None
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
