"""Smaller models that were made: what went, what it cost, what is left (Voita et al. 2019, section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from headcount.record import Record
from headcount.record.codec import decode
from headcount.record.results.inspect import Cost
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.sections.inspection import cost_table
from headcount.report.table import Column, Table, digits_for, interval


def _ends(record: Record) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Quality before and after, where it was measured."""
    quality = record.parts.get("quality") or {}
    before, after = quality.get("before"), quality.get("after")
    return (before, after) if before and after else None


def _answer(record: Record) -> str:
    parts = record.parts
    gone, total, method = len(parts["removed"]), parts["heads"], parts.get("method", "a given list")
    before, after = parts["cost"]["before"]["parameters"], parts["cost"]["after"]["parameters"]
    verified = " (verified)" if parts.get("verified") else ""
    answer = (
        f"{gone} of {total} heads were removed by {method}{verified}, and {1 - after / before:.0%} of all parameters "
        "with them"
    )
    ends = _ends(record)
    if ends:
        digits = max(digits_for(end["value"]) for end in ends)
        metric = parts.get("metric", "quality")
        answer += f"; {metric} was {ends[0]['value']:.{digits}f} before and is {ends[1]['value']:.{digits}f} after"
    if parts.get("measured_on", {}).get("held_out") is False:
        answer += ", which flatters: it was measured on texts that heads were chosen on"
    return f"{answer}.{_training(parts)}"


def _training(parts: Mapping[str, Any]) -> str:
    """What was trained, and what became of learned gates, where there were any."""
    training, gates = parts.get("training"), parts.get("gates")
    sentences = ""
    if training:
        trained = next(iter(training.values()))["trained"]
        sentences += f" Trained: {trained}, {' + '.join(str(stage['steps']) for stage in training.values())} steps."
    if gates:
        sentences += f" {100 * gates['settled']:.0f}% of the gates had settled (mean within .05 of 0 or 1)."
    if gates and gates["cut_by_rank"]:
        count = gates["cut_by_rank"]
        sentences += f" {'1 head was' if count == 1 else f'{count} heads were'} decided by rank, not by their gates."
    return sentences


def _tables(labelled: Labelled) -> list[Table]:
    tuned = any("training" in record.parts for _, record in labelled)

    def row(record: Record) -> list[list[Any]]:
        parts = record.parts
        ends = _ends(record)
        removed = Counter(name.split(".")[0] for name in parts["removed"])
        cut = (parts.get("quality") or {}).get("cut") or {}
        before, after = ends or ({}, {})
        return [
            [
                parts.get("method", "given"), parts["heads"] - len(parts["removed"]),
                ", ".join(f"{count} {kind}" for kind, count in removed.items()), before.get("value"),
                *([cut.get("value")] if tuned else []), after.get("value"),
                interval(after.get("low"), after.get("high"), 3),
                parts["cost"]["before"]["parameters"], parts["cost"]["after"]["parameters"],
            ]
        ]  # fmt: skip

    names = [Column("method"), Column("heads left"), Column("gone"), Column("before", 3)]
    names += [Column("just cut", 3), Column("fine-tuned", 3)] if tuned else [Column("after", 3)]
    names += [Column("95% interval"), Column("parameters before"), Column("parameters after")]
    tables = [table_of("Smaller models", labelled, names, row)]
    if len(labelled) > 1:
        return tables
    return [*tables, *_details(labelled[0][1])]


def _details(record: Record) -> list[Table]:
    """How one model was pruned, and what that costs."""
    parts = record.parts
    tables = [_curve_table(parts)] if parts.get("curve") else []
    tables += [_compensation_table(parts["compensation"])] if parts.get("compensation") else []
    costs = {
        name: decode(Cost, cost, source="this record", path=f"cost.{name}") for name, cost in parts["cost"].items()
    }
    return [*tables, cost_table(costs)]


def _curve_table(parts: Mapping[str, Any]) -> Table:
    kinds = list(parts["curve"][0]["kept"])
    digits = max(digits_for(point["value"]) for point in parts["curve"])
    columns = [
        Column("heads gone"), Column("% gone", 0), Column(parts["metric"], digits), Column("95% interval"),
        *(Column(f"{kind} left") for kind in kinds),
    ]  # fmt: skip
    rows = [
        [
            point["removed"], 100 * point["share"], point["value"], interval(point["low"], point["high"], digits),
            *(point["kept"][kind] for kind in kinds),
        ]
        for point in parts["curve"]
    ]  # fmt: skip
    return Table("Quality after each step", columns, rows)


def _compensation_table(fitted: Mapping[str, Any]) -> Table:
    """How well each site makes up for the heads it lost: shares of the full site's variance, on held-out rows."""
    columns = [Column("site"), Column("rho"), Column("explained without", 3), Column("explained", 3)]
    rows = [
        [
            name, None if site["rho"] is None else f"{float(site['rho']):.3g}", float(site["explained_without"]),
            float(site["explained"]),
        ]
        for name, site in fitted["sites"].items()
    ]  # fmt: skip
    quality = fitted.get("quality")
    note = f"Fitted on {fitted['rows']} tokens."
    if quality:
        spread = interval(quality["low"], quality["high"], 2)
        note += f" {quality['metric']} with compensation: {quality['value']:.2f} (95% {spread})."
    return Table(f"Compensation by {fitted['how']}", columns, rows, note)


def _printed(record: Record) -> list[Printed]:
    ends = _ends(record)
    removed = Counter(name.split(".")[0] for name in record.parts["removed"])
    if record.parts.get("method") not in ("l0", "subset") or not ends:
        return []
    gone = f"{len(record.parts['removed'])} of {record.parts['heads']} gone"
    value = f"{gone}: {ends[0]['value']:.2f} to {ends[1]['value']:.2f}"
    paper = "WMT 48: 29.6, 19: plateau, 10: 29.5, 5: 29.0, 2: 28.25 BLEU"
    order = ", ".join(kind for kind, _ in removed.most_common())
    return [
        Printed("quality against encoder heads left", paper, value),
        Printed("which kind goes first", "encoder first, cross attention last", f"most gone first: {order}"),
    ]


SECTION = Section(
    order=50,
    title="Smaller models",
    question="What does a smaller model cost?",
    studies=("prune",),
    parts=("removed", "cost"),
    command="headcount prune MODEL --choose gradient --keep 50% --task TASK --data DATA --out DIR",
    answer=_answer,
    how="Heads are removed physically and the smaller model compared with the masked one before it is saved.",
    tables=_tables,
    figures=("gates-course",),
    printed=_printed,
)
