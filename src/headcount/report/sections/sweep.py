"""Quality as learned gates close more heads (Voita et al. 2019, Figures 7 to 10, Table 2)."""

from __future__ import annotations

from typing import Any

from headcount.heads import Head
from headcount.record import Record
from headcount.record.result import Quality
from headcount.record.results.prune_sweep import Sweep, SweepPoint
from headcount.report.encoder_curve import encoder_curve
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.table import Column, Table, digits_for, headings, interval


def _points(parts: Sweep) -> list[tuple[str, SweepPoint]]:
    """(factor, point), most heads first."""
    return sorted(parts.sweep.items(), key=lambda item: -sum(item[1].kept_by_kind.values()))


def _after(point: SweepPoint) -> Quality | None:
    return point.quality.after or point.quality.cut


def _metric(record: Record[Sweep]) -> str:
    """The metric of the models, if quality was measured."""
    qualities = (_after(point) for point in record.parts.sweep.values())
    return next((quality.metric for quality in qualities if quality), "quality")


def _answer(record: Record[Sweep]) -> str:
    points = [point for _, point in _points(record.parts)]
    before = points[0].quality.before
    sentences = [
        f"{after.value:.{digits_for(after.value)}f} with {sum(point.kept_by_kind.values())}"
        for point in points
        if (after := _after(point))
    ]
    start = f"{before.value:.{digits_for(before.value)}f} with all heads, " if before else ""
    return f"Learned by {record.parts.method}: {_metric(record)} is {start}{', '.join(sentences)} heads."


def _tables(labelled: Labelled) -> list[Table]:
    def row(penalty: str, point: SweepPoint) -> list[Any]:
        cut, after = point.quality.cut, _after(point)
        kinds = ", ".join(f"{kind} {count}" for kind, count in point.kept_by_kind.items())
        return [
            penalty, sum(point.kept_by_kind.values()), kinds, cut and cut.value, after and after.value,
            interval(after, 3), point.settled,
        ]  # fmt: skip

    columns = headings("penalty", "heads left", "by kind", Column("before fine-tuning", 3))
    columns += [Column(_metric(labelled[0][1]), 3), Column("95% interval")]
    columns.append(Column("gates settled", 2))
    title = "One model for each factor of the penalty"
    return [table_of(title, labelled, columns, lambda record: [row(*item) for item in _points(record.parts)])]


def _printed(record: Record[Sweep]) -> list[Printed]:
    measured = [(point, after) for _, point in _points(record.parts) if (after := _after(point))]
    points = [(point.kept_by_kind.get("encoder", 0), after.value) for point, after in measured]
    kinds = {Head.parse(name).kind for point, _ in measured for name in point.removed_heads}
    metric = measured[0][1].metric if measured else None
    return [
        *encoder_curve(points, kinds=kinds, metric=metric),
        Printed(
            "WMT, all kinds e/d/d-e, from trained | from scratch",
            "14/31/30 29.62|29.47, 12/21/25 29.36|28.95, 8/13/15 29.06|28.56, 5/9/12 28.90|28.41",
            None,
        ),
    ]


SECTION = Section(
    order=52,
    title="Learned pruning",
    question="How many heads remain when gates are learned?",
    studies=("prune-sweep",),
    parts=("sweep",),
    command="headcount prune MODEL --choose l0 --penalty 0.01,0.03,0.1 --task TASK --data DATA --out DIR",
    answer=_answer,
    method="Every head gets a gate, trained with the model under a penalty for open gates; closed heads are removed.",
    tables=_tables,
    alike=_metric,
    printed=_printed,
    when=lambda record: bool(record.parts.sweep),
    without="other processes are still working on its first models",
)
