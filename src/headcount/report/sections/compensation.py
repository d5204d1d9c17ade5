"""How much of the loss is restored without training."""

from __future__ import annotations

from collections.abc import Hashable
from math import isnan

from headcount.record import Record
from headcount.record.results.compensation import CompensationCurves
from headcount.report.section import Labelled, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, best_of, digits_for, headings, interval
from headcount.statistics import Interval


def _answer(record: Record[CompensationCurves]) -> str:
    parts, ratios = record.parts, _ratios(record.parts)
    if parts.at and ratios:
        best = min(ratios, key=lambda pair: ratios[pair].value)
        way, other = best.split("/")
        value, low, high = (f"{share:.0%}".replace("-", "\u2212") for share in ratios[best])
        return (
            f"With {parts.at.removed} of {parts.num_heads} heads removed, {way} leaves {value} (95% {low} to {high}"
            f"{best_of(len(ratios))}) of the excess loss that {other} leaves."
        )
    ends = {way: points[-1].value for way, points in parts.compensations.items() if points}
    digits = max(map(digits_for, ends.values()), default=2)
    last = [f"{Column('', digits).text(value)} with {way}" for way, value in ends.items()]
    return f"With the most heads removed, an example's excess loss is {', '.join(last)}."


def _ratios(parts: CompensationCurves) -> dict[str, Interval]:
    """way/other -> share of the excess loss of the other, where that is a loss for certain."""
    if parts.at is None:
        return {}
    points = {(way, point.removed): point for way, line in parts.compensations.items() for point in line}
    divisors = {pair: points.get((pair.split("/")[1], parts.at.removed)) for pair in parts.at.ratios}
    return {
        pair: ratio
        for pair, ratio in parts.at.ratios.items()
        if not isnan(ratio.value) and (divisor := divisors[pair]) and divisor.low > 0
    }


def _tables(labelled: Labelled) -> list[Table]:
    all_points = [point for _, record in labelled for line in record.parts.compensations.values() for point in line]
    digits = digits_for(max(point.value for point in all_points))
    ways = list(dict.fromkeys(way for _, record in labelled for way in record.parts.compensations))

    def losses(record: Record[CompensationCurves]) -> Rows:
        lines = record.parts.compensations
        return [
            [point.removed, 100 * point.share, *(lines[way][index].value if way in lines else None for way in ways)]
            for index, point in enumerate(lines["none"])
        ]

    def details(record: Record[CompensationCurves]) -> Rows:
        return [
            [way, point.removed, interval(point, digits), round(point.seconds, 1)]
            for way, points in record.parts.compensations.items()
            for point in points
        ]

    columns = [Column("heads gone"), Column("% gone", 0), *(Column(way, digits) for way in ways)]
    more = headings("compensation", "heads gone", "95% interval", Column("seconds", 1))
    reached = [(label, record) for label, record in labelled if record.parts.at]
    return [
        table_of("Excess loss under each compensation", labelled, columns, losses),
        *([_quality_table(reached)] if reached else []),
        table_of("Intervals over examples, and time to make the model", labelled, more, details),
    ]


def _quality_table(labelled: Labelled) -> Table:
    """All ways at the point where no compensation first loses the stated points."""

    def rows(record: Record[CompensationCurves]) -> Rows:
        at = record.parts.at
        if at is None:
            return []
        ratios = {pair.split("/")[0]: (pair, ratio) for pair, ratio in _ratios(record.parts).items()}
        lines = []
        for way, quality in at.quality.items():
            pair, ratio = ratios.get(way, (None, None))
            excess = [ratio.value, interval(ratio, 2)] if ratio else [None, None]
            lines.append([at.removed, way, quality.value, interval(quality, 3), pair, *excess])
        return lines

    metric, lost = labelled[0][1].parts.metric, _points_lost(labelled[0][1])
    columns = headings(
        "heads gone", "compensation", Column(metric, 3), "95% interval", "excess over excess of", Column("ratio", 2),
        "95% interval",
    )  # fmt: skip
    note = f"With so many heads removed, the uncompensated model first loses {lost} {metric}. " if lost else ""
    note += "No ratio where the other way may leave no excess loss."
    return table_of(f"{metric} where it is first lost", labelled, columns, rows, note=note)


def _points_lost(record: Record[CompensationCurves]) -> Hashable:
    """Points of the metric whose loss was looked for."""
    return record.signature.arguments.get("points")


def _alike(record: Record[CompensationCurves]) -> Hashable:
    return metric_of(record), _points_lost(record)


SECTION = Section(
    order=54,
    title="Compensation",
    question="How much of the loss can be recovered without training?",
    studies=("compensation",),
    parts=("compensations.none",),
    command="headcount study compensation MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "All ways remove the same heads but greedy search, which chooses its own. Compensation is fitted on "
        "calibration data and measured on other data. Excess loss is an example's negative log-likelihood above the "
        "whole model's."
    ),
    tables=_tables,
    alike=_alike,
    figures=("compensation",),
)
