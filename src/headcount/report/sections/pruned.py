"""Pruned models: removed heads, quality and costs (Voita et al. 2019, section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan

from headcount.heads import Head
from headcount.record import Record
from headcount.record.result import Quality, Step
from headcount.record.results.prune import TUNED, CompensationFit, Pruning, SiteFit
from headcount.report.encoder_curve import encoder_curve
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.sections.inspection import cost_table
from headcount.report.table import Column, Rows, Table, digits_for, headings, interval, listed, was, within


def _ends(parts: Pruning) -> tuple[Quality, Quality] | None:
    """Quality before and after, if measured."""
    before, after = parts.quality.before, parts.quality.after
    return (before, after) if before and after else None


def _answer(record: Record[Pruning]) -> str:
    parts = record.parts
    before, after = parts.cost.before.parameters, parts.cost.after.parameters
    verified = " (verified)" if parts.verified else ""
    way = "name" if parts.method == "given" else parts.method
    removed = len(parts.removed_heads)
    answer = (
        f"{removed} of {parts.num_heads} heads {was(removed)} removed by {way}{verified}, and "
        f"{1 - after / before:.0%} of all parameters with them"
    )
    stages = parts.stages
    if stages:
        digits = max(digits_for(stage.value) for stage in stages.values())
        values = ", ".join(f"{name} {stage.value:.{digits}f}" for name, stage in stages.items())
        answer += f"; {stages[next(iter(stages))].metric}: {values}{_change(parts, digits)}"
    caveat = parts.measured_on.caveat if parts.measured_on else ""
    return f"{answer}{caveat}.{_training(parts)}"


def _change(parts: Pruning, digits: int) -> str:
    """The change from the whole model to the end with its paired interval, which is narrower than those of both."""
    change = parts.change
    if change is None or isnan(change.low):
        return ""
    signed = Column("", digits, signed=True)
    value, low, high = map(signed.text, (change.difference, change.low, change.high))
    return f" (change {value}, 95% {low} to {high}, paired)"


def _training(parts: Pruning) -> str:
    """The training, and the state of learned gates, if there are any."""
    stages, gates = list(parts.training.values()), parts.gates
    sentences = ""
    if stages:
        sentences += f" Trained: {stages[0].trained}, {' + '.join(str(stage.steps) for stage in stages)} steps."
    if gates:
        sentences += f" {100 * gates.settled:.0f}% of the gates had settled (mean within .05 of 0 or 1)."
    if gates and gates.cut_by_rank:
        count = gates.cut_by_rank
        sentences += f" {'1 head was' if count == 1 else f'{count} heads were'} decided by rank, not by their gates."
    return sentences


def _tables(labelled: Labelled) -> list[Table]:
    metrics = list(dict.fromkeys(stage.metric for _, record in labelled for stage in record.parts.stages.values()))
    stage_names = list(dict.fromkeys(name for _, record in labelled for name in record.parts.stages))
    stage_names.sort(key=lambda name: name == TUNED)  # last, whichever model has it

    def row(record: Record[Pruning]) -> Rows:
        parts, stages = record.parts, record.parts.stages
        removed = Counter(Head.parse(name).kind for name in parts.removed_heads)
        end, change = list(stages.values())[-1] if stages else None, parts.change
        return [
            [
                parts.method, len(parts.heads), ", ".join(f"{count} {kind}" for kind, count in removed.items()),
                *([end.metric if end else None] if len(metrics) > 1 else []),
                *(stages[name].value if name in stages else None for name in stage_names),
                interval(end, 3), change.difference if change else None, interval(change, 3),
                parts.cost.before.parameters, parts.cost.after.parameters,
            ]
        ]  # fmt: skip

    columns = headings("method", "heads left", "heads gone", *(["metric"] if len(metrics) > 1 else []))
    columns += [*(Column(name, 3) for name in stage_names), Column("95% interval of the last stage")]
    columns += [Column("change", 3, signed=True), Column("95% interval of the change, paired")]
    columns += headings("parameters before", "parameters after")
    note = f"{listed(metrics)} at each stage of pruning." if stage_names else ""
    tables = [table_of("Smaller models", labelled, columns, row, note=note)]
    if len(labelled) > 1:
        return tables
    return [*tables, *_details(labelled[0][1])]


def _details(record: Record[Pruning]) -> list[Table]:
    """Details of one pruned model, and its costs."""
    parts = record.parts
    tables = [_curve_table(parts.curve, parts.metric or "quality", parts.stage_of_steps)] if parts.curve else []
    tables += [_compensation_table(parts.compensation)] if parts.compensation else []
    return [*tables, cost_table({"before": parts.cost.before, "after": parts.cost.after})]


def _curve_table(curve: Sequence[Step], metric: str, stage: str) -> Table:
    kinds = list(curve[0].kept_by_kind)
    digits = max(digits_for(point.value) for point in curve)
    total = len(curve[0].heads or ()) or sum(curve[0].kept_by_kind.values()) or 1  # of all kinds
    columns = headings(
        "heads gone", Column("% gone", 0), Column(metric, digits), "95% interval",
        *(Column(f"{kind} left") for kind in kinds),
    )  # fmt: skip
    rows = [
        [
            point.removed, 100 * point.removed / total, point.value, interval(point, digits),
            *(point.kept_by_kind[kind] for kind in kinds),
        ]
        for point in curve
    ]  # fmt: skip
    return Table(f"Quality after each step, {stage}", columns, rows)


def _compensation_table(fitted: CompensationFit) -> Table:
    """Quality of the compensation of each site: shares of the full site's variance explained on held-out rows."""
    columns = headings("site", "rho", Column("explained without", 3), Column("explained", 3))
    rows = [[name, _strength(site), site.explained_without, site.explained] for name, site in fitted.sites.items()]
    quality = fitted.quality
    note = f"Fitted on {fitted.rows} tokens."
    if quality:
        digits = digits_for(quality.value)
        note += f" {quality.metric} with compensation: {quality.value:.{digits}f} ({within(quality, digits)})."
    return Table(f"Compensation by {fitted.method}", columns, rows, note)


def _strength(site: SiteFit) -> str | None:
    return "inf" if site.unchanged else None if site.rho is None else f"{site.rho:.3g}"


def _printed(record: Record[Pruning]) -> list[Printed]:
    parts, ends = record.parts, _ends(record.parts)
    if parts.gates is None or not ends:
        return []
    removed = Counter(Head.parse(name).kind for name in parts.removed_heads)
    left = parts.kept_by_kind.get("encoder", 0)
    points = [(left + removed["encoder"], ends[0].value), (left, ends[1].value)]
    gated = {Head.parse(name).kind for name in parts.gates.values}  # one kind alone says nothing of the others
    left_by_kind = {kind: parts.kept_by_kind.get(kind, 0) for kind in (*parts.kept_by_kind, *removed) if kind in gated}
    gone = {kind: removed[kind] / max(1, removed[kind] + count) for kind, count in left_by_kind.items()}
    shares = [f"{kind} {gone[kind]:.0%}" for kind in sorted(gone, key=lambda kind: -gone[kind])]
    order = f"most gone first: {', '.join(shares)}" if len(gated) > 1 else None
    return [
        *encoder_curve(points, kinds=removed, metric=ends[1].metric),
        Printed("which kind goes first", "encoder first, cross attention last", order),
    ]


SECTION = Section(
    order=50,
    title="Smaller models",
    question="How much quality does the smaller model lose?",
    studies=("prune",),
    parts=("removed_heads", "cost"),
    command="headcount prune MODEL --choose gradient --keep 50% --task TASK --data DATA --out DIR",
    answer=_answer,
    method="Heads are physically removed, and the smaller model is compared with the masked one before it is saved.",
    tables=_tables,
    figures=("gates-course",),
    printed=_printed,
)
