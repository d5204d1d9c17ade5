"""How many heads can be removed (Michel et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

import numpy as np

from headcount.plural import plural
from headcount.record import Record
from headcount.record.result import Step
from headcount.record.results.curves import Curves
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, digits_for, headings, interval, listed, parts_of_variance

_MEANS = {"random": "random (mean)"}  # orders that stand for the mean of several


def _spared(points: Sequence[Step], higher_is_better: bool) -> float:
    """The share of heads that can be removed before the value is worse than the 95% interval of the whole model.

    One example has no interval: then before the value is worse than that of the whole model.
    """
    start, reached = points[0], 0.0
    low, high = (start.value, start.value) if isnan(start.low) else (start.low, start.high)
    for point in points:
        if point.value < low if higher_is_better else point.value > high:
            break
        reached = point.share
    return reached


def unharmed(points: Sequence[Step], higher_is_better: bool) -> float:
    """The share of heads that can be removed before the value is worse for certain on the same examples.

    The interval of the whole model is far wider than that of a paired change: of 400 answers, if 1% more are lost at
    each step, the last step within it is worse at p below .05 in 99% of cases. Without paired changes see `_spared`.
    """
    if not _are_paired(points):
        return _spared(points, higher_is_better)
    worse = (number for number, point in enumerate(points) if _is_worse(point, higher_is_better))
    return points[max(next(worse, len(points)) - 1, 0)].share


def _are_paired(points: Sequence[Step]) -> bool:
    """Whether every step has an interval of its change or, in older records, of the share of the score that is left."""
    paired = (point.kept if point.change is None else point.change for point in points)
    return not any(interval is None or isnan(interval.low) for interval in paired)


def _is_worse(point: Step, higher_is_better: bool) -> bool:
    """By the change and by the share that is left, whichever is wider. A share without an upper end may be any."""
    if point.change is None:
        return point.kept is not None and point.kept.high < 1
    is_certain = point.change.high < 0 if higher_is_better else point.change.low > 0
    return is_certain and not (point.kept is not None and point.kept.high >= 1)


def unharmed_text(points: Sequence[Step], higher_is_better: bool) -> str:
    """`unharmed` in percent; the last step that was measured is a lower bound, unless no head is left."""
    share = unharmed(points, higher_is_better)
    return f"{'at least ' if share == points[-1].share < 1 else ''}{share:.0%}"


def limit(points: Sequence[Step]) -> str:
    """What happens to the value beyond the share of `unharmed`."""
    if _are_paired(points):
        return "gets measurably worse"
    if isnan(points[0].low):
        return "gets worse (too few examples for an interval)"
    return "leaves the 95% interval of the whole model"


def share_to_try(parts: Curves, order: str) -> float:
    """The largest measured share of heads that can go by an order, or the smallest step if none can.

    Removing all heads is not a share to try. NaN if nothing was removed by this order.
    """
    points = next((curve.points for curve in parts.curves if curve.order == order), ())
    shares = [point.share for point in points if 0 < point.share < 1]
    if not shares:
        return nan
    return max([share for share in shares if share <= unharmed(points, parts.higher_is_better)], default=shares[0])


def orders(parts: Curves) -> dict[str, list[Sequence[Step]]]:
    """Curves by order; there are several random ones."""
    by_order: dict[str, list[Sequence[Step]]] = {}
    for curve in parts.curves:
        by_order.setdefault(curve.order, []).append(curve.points)
    return by_order


def _answer(record: Record[Curves]) -> str:
    parts = record.parts
    shares = [
        f"{_mean_text(lines, parts.higher_is_better)} {'in random order' if order == 'random' else f'by {order}'}"
        for order, lines in orders(parts).items()
    ]
    return (
        f"{parts.metric} is {parts.value:.{digits_for(parts.value)}f} with all heads. Of the heads, "
        f"{listed(shares)} can go before it {limit(parts.curves[0].points)} ({_behind(parts)})."
    )


def _mean_text(lines: Sequence[Sequence[Step]], higher_is_better: bool) -> str:
    """The mean share of `unharmed` of several lines."""
    if len(lines) == 1:
        return unharmed_text(lines[0], higher_is_better)
    shares = [unharmed(points, higher_is_better) for points in lines]
    is_bound = any(share == points[-1].share < 1 for share, points in zip(shares, lines, strict=True))
    return f"{'at least ' if is_bound else ''}{np.mean(shares):.0%}"


def _behind(parts: Curves) -> str:
    """Number of models and random orders, in words."""
    random = sum(curve.order == "random" for curve in parts.curves)
    return "1 model" + (f", {plural(random, 'random order')}" if random else "")


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts.value) for _, record in labelled)
    names = list(dict.fromkeys(order for _, record in labelled for order in orders(record.parts)))

    def rows(record: Record[Curves]) -> Rows:
        lines = orders(record.parts)
        longest = next(iter(lines.values()))[0]
        return [
            [point.removed, 100 * point.share, *(_mean_at(lines.get(name, []), index) for name in names)]
            for index, point in enumerate(longest)
        ]

    columns = [
        Column("heads gone"), Column("% gone", 0),
        *(Column("random (mean)" if name == "random" else f"by {name}", digits) for name in names),
    ]  # fmt: skip
    title = f"{labelled[0][1].parts.metric} as heads are masked"
    compared = _compared_table(labelled, digits)
    return [table_of(title, labelled, columns, rows), *([compared] if compared.rows else [])]


def _compared_table(labelled: Labelled, digits: int) -> Table:
    """Orders against random ones and against each other, on the same examples."""

    def rows(record: Record[Curves]) -> Rows:
        parts = record.parts
        against_random = [
            [
                order,
                "random (mean)",
                f"{100 * gain.share:.0f}%",
                gain.value,
                interval(gain, digits),
                parts_of_variance(gain.variance, seeds="orders"),
            ]
            for order, gains in parts.against_random.items()
            for gain in gains
            if 0.15 <= gain.share <= 0.65
        ]
        against_orders = [
            [
                lead.first, _MEANS.get(lead.second, lead.second),
                f"{100 * lead.start:.0f} to {100 * lead.end:.0f}%, mean", lead.value,
                interval(lead, digits), parts_of_variance(lead.variance, seeds="orders"),
            ]
            for lead in parts.leads
            if lead.first in orders(parts)
        ]  # fmt: skip
        return [*against_random, *against_orders]

    columns = headings(
        "order", "against", "heads gone", Column("better by", digits, signed=True), "95% interval", "variance"
    )
    note = "Variance: of the mean over random orders, by what it varies with."
    return table_of("Orders compared on the same examples", labelled, columns, rows, note=note)


def _mean_at(lines: list[Sequence[Step]], index: int) -> float | None:
    values = [points[index].value for points in lines if index < len(points)]
    return float(np.mean(values)) if values else None


def _printed(record: Record[Curves]) -> list[Printed]:
    order, lines = next(iter(orders(record.parts).items()))
    share = unharmed_text(lines[0], record.parts.higher_is_better)
    paper = "20% (WMT), 40% (MNLI), 60% (SST-2)"
    return [Printed("heads that can go before a loss is measurable", paper, f"{share} by {order}")]


SECTION = Section(
    order=30,
    title="Pruning step by step",
    question="How many heads can be removed, and in which order?",
    studies=("curves",),
    parts=("curves",),
    command="headcount study curves MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "Heads of the whole model are masked a few at a time, lowest score first, and the model is measured after "
        "each step. Bands are 95% intervals over examples; random orders are the control."
    ),
    tables=_tables,
    alike=metric_of,
    figures=("pruning-curves",),
    printed=_printed,
)
