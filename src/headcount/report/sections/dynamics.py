"""When in training heads become dispensable (Michel et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Hashable
from math import isnan

from headcount.record import Record
from headcount.record.results.dynamics import Dynamics, Epoch, EpochStep
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, digits_for

_PAPER_SHARE = 0.4  # of heads, which the paper names; the nearest step that was measured is shown


def _percent(share: float) -> str:
    return "an unknown share" if isnan(share) else f"{100 * share:.0f}%"


def _times(multiple: float) -> str:
    return "an unknown number of times" if isnan(multiple) else f"{multiple:.2f} times"


def _answer(record: Record[Dynamics]) -> str:
    early, late = record.parts.by_epoch[0], record.parts.by_epoch[-1]
    at_start, at_end = early.nearest(_PAPER_SHARE), late.nearest(_PAPER_SHARE)
    if not record.parts.higher_is_better:
        return (
            f"With {at_start.share:.0%} of the heads masked, the {record.parts.metric} of the model of epoch "
            f"{early.epoch:g} is {_times(early.multiple(at_start))} that with all heads, of the model of epoch "
            f"{late.epoch:g} {_times(late.multiple(at_end))}; lower is better."
        )
    return (
        f"With {at_start.share:.0%} of the heads masked, the model of epoch {early.epoch:g} keeps "
        f"{_percent(early.share_left(at_start))} of its own {record.parts.metric}, that of epoch {late.epoch:g} "
        f"keeps {_percent(late.share_left(at_end))}."
    )


def _left(parts: Dynamics, epoch: Epoch, point: EpochStep) -> str:
    if parts.higher_is_better:
        return _percent(epoch.share_left(point))
    return f"{_times(epoch.multiple(point))} its {parts.metric}"


def _tables(labelled: Labelled) -> list[Table]:
    parts = labelled[0][1].parts
    lower = not parts.higher_is_better

    def rows(record: Record[Dynamics]) -> Rows:
        return [
            [
                f"{epoch.epoch:g}", epoch.value,
                *(epoch.multiple(point) if lower else 100 * epoch.share_left(point) for point in epoch.points[1:]),
            ]
            for epoch in record.parts.by_epoch
        ]  # fmt: skip

    columns = [
        Column("epoch"), Column(parts.metric, 2),
        *(Column(f"{100 * point.share:.0f}% gone", 2 if lower else 0) for point in parts.by_epoch[0].points[1:]),
    ]  # fmt: skip
    title = (
        f"{parts.metric} over that of the epoch with all heads" if lower else "% of an epoch's own score that is left"
    )
    return [table_of(title, labelled, columns, rows)]


def _alike(record: Record[Dynamics]) -> Hashable:
    """The metric, and the shares of heads that the columns stand for."""
    return metric_of(record), tuple(point.share for point in record.parts.by_epoch[0].points)


def _printed(record: Record[Dynamics]) -> list[Printed]:
    epochs = record.parts.by_epoch
    digits = max(1, max(digits_for(epoch.value) for epoch in epochs) - 1)
    values = ", ".join(f"{epoch.epoch:g}: {epoch.value:.{digits}f}" for epoch in epochs)
    late = [epoch for epoch in epochs if epoch.epoch >= 10]
    shares = ", ".join(
        f"{_left(record.parts, epoch, step)} with {step.share:.0%} at epoch {epoch.epoch:g}"
        for epoch in late
        for step in [epoch.nearest(_PAPER_SHARE)]
    )
    paper = "1: 3.0, 2: 6.2, 3: 18.1, 5: 26.9, 10: 30.6, 20: 34.5, 30: 34.7, 40: 34.9 BLEU"
    return [
        Printed("unpruned score by epoch", paper, f"{values} {record.parts.metric}"),
        Printed("kept with 40% pruned, from epoch 10 on", "85 to 90%", shares or None),
    ]


SECTION = Section(
    order=40,
    title="Pruning during training",
    question="When do heads become dispensable?",
    studies=("dynamics",),
    parts=("by_epoch",),
    command="headcount study dynamics RUN --task TASK --data DATA --out DIR",
    answer=_answer,
    method="The model of every epoch is pruned by its own scores and compared with itself unpruned.",
    tables=_tables,
    alike=_alike,
    figures=("dynamics",),
    printed=_printed,
)
