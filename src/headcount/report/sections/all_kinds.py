"""Heads of all kinds pruned together, from the trained model and from scratch (Voita et al. 2019, section 6.3)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import mean
from typing import Any

from headcount.record import Record
from headcount.record.result import Quality
from headcount.record.results.tradeoff import StepsOfWays, WayKind
from headcount.report.points import scratch_steps, way_heading
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, digits_for, headings, interval

# Voita et al. 2019, Table 2: heads of encoder, decoder and cross attention; BLEU from the trained model, from scratch.
_PAPER = (
    ("WMT, all heads", "48/48/48: 29.6 BLEU"),
    ("WMT, from trained | from scratch", "14/31/30: 29.62 | 29.47; 12/21/25: 29.36 | 28.95 BLEU"),
    ("WMT, fewer heads", "8/13/15: 29.06 | 28.56; 5/9/12: 28.90 | 28.41 BLEU"),
    ("subtitles, all heads", "48/48/48: 32.4 BLEU"),
    ("subtitles, from trained | from scratch", "27/31/46: 32.24 | 32.23; 13/17/31: 32.23 | 31.98 BLEU"),
    ("subtitles, fewer heads", "6/9/13: 32.27 | 31.84 BLEU"),
)  # fmt: skip


def _answer(record: Record) -> str:
    parts, rows = record.parts, record.parts.all_kinds
    fewest = min(row.keep for row in rows)
    smallest = [row for row in rows if row.keep == fewest]
    digits = digits_for(parts.whole.value)
    shares = {kind: mean(row.kept_by_kind.get(kind, 0) for row in smallest) / of for kind, of in parts.of.items()}
    order = sorted(shares, key=lambda kind: shares[kind])
    runs = f", mean of {len(smallest)} runs" if len(smallest) > 1 else ""
    answer = (
        f"With {fewest} of {sum(parts.of.values())} heads left by {way_heading(parts, smallest[0].way)}, "
        f"{', '.join(f'{100 * shares[kind]:.0f}% of {kind}' for kind in order)}{runs}, {parts.metric} is "
        f"{_mean(smallest, 'trained'):.{digits}f}, against {parts.whole.value:.{digits}f} with all of them"
    )
    scratch = _mean(smallest, "scratch")
    if scratch is not None:
        answer += f" and {scratch:.{digits}f} trained {scratch_heading(parts.steps)} with the same heads"
    return answer + "."


def _mean(rows: Sequence[WayKind], name: str) -> float | None:
    """Over the seeds that have one."""
    values = [quality.value for row in rows if (quality := getattr(row, name))]
    return mean(values) if values else None


def _heads(record: Record, counts: Mapping[str, int]) -> str:
    return "/".join(str(counts.get(kind, 0)) for kind in record.parts.of)


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts.whole.value) for _, record in labelled)
    has_scratch = any(row.scratch for _, record in labelled for row in record.parts.all_kinds)

    def rows(record: Record) -> Rows:
        parts = record.parts
        lines = [[_heads(record, parts.of), None, "all heads", *_measured(parts.whole, digits), None, None]]
        for row in parts.all_kinds:
            cells = [*_measured(row.trained, digits), *_measured(row.scratch, digits)]
            lines.append([_heads(record, row.kept_by_kind), row.seed, way_heading(parts, row.way), *cells])
        return lines if has_scratch else [line[:-2] for line in lines]

    parts = labelled[0][1].parts
    columns = headings(
        f"heads ({'/'.join(parts.of)})", "seed", "way", Column("from trained", digits), "95% interval",
        *((Column(scratch_heading(parts.steps), digits), "95% interval") if has_scratch else ()),
    )  # fmt: skip
    note = f"From trained: {_more_steps(labelled[0][1])} more steps for a trained model"
    if has_scratch:
        note += (
            f"; from scratch: {parts.steps.scratch} steps from new random weights with the same heads in every layer"
        )
    return [table_of(f"{parts.metric} with heads of all kinds pruned", labelled, columns, rows, note=f"{note}.")]


def _alike(record: Record) -> Hashable:
    """What the title, the headings and the note say: metric, kinds of attention, training steps."""
    parts = record.parts
    return metric_of(record), tuple(parts.of), scratch_heading(parts.steps), _more_steps(record)


def _more_steps(record: Record) -> int:
    """Training steps of a pruned model after those of the whole one."""
    parts = record.parts
    return {point.way: point.steps for point in parts.points}[parts.all_kinds[0].way]


def scratch_heading(steps: StepsOfWays) -> str:
    return f"from scratch ({scratch_steps(steps)})"


def _measured(quality: Quality | None, digits: int) -> list[Any]:
    if quality is None:
        return [None, None]
    return [quality.value, interval(quality, digits)]


def _printed(record: Record) -> list[Printed]:
    parts = record.parts
    seeds = {row.seed for row in parts.all_kinds}
    ours = "; ".join(
        f"{_heads(record, row.kept_by_kind)}: {row.trained.value:.2f}"
        + (f" | {row.scratch.value:.2f}" if row.scratch else "")
        + (f" (seed {row.seed})" if len(seeds) > 1 else "")
        for row in parts.all_kinds
    )
    compared = f"pruned | {scratch_heading(parts.steps)}: " if any(row.scratch for row in parts.all_kinds) else ""
    reference = f"{_heads(record, parts.of)}: {parts.whole.value:.2f} {parts.metric}"
    values = {0: reference, 1: f"{compared}{ours} {parts.metric}"}
    return [Printed(what, paper, values.get(index)) for index, (what, paper) in enumerate(_PAPER)]


SECTION = Section(
    order=54,
    title="All kinds of attention",
    question="Which kinds of attention are pruned first, and could so small a model be trained from scratch?",
    studies=("tradeoff",),
    parts=("all_kinds", "whole", "of"),
    command="headcount study tradeoff MODEL --keep 10,7 --ways l0,scratch --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "Heads of all kinds can be removed. The model from scratch has the same heads in every layer as the pruned one "
        "and random initial weights, all of which are trained."
    ),
    tables=_tables,
    alike=_alike,
    figures=("kept-by-kind", "kept-by-layer"),
    printed=_printed,
    when=lambda record: bool(record.parts.all_kinds),
    without="heads of one kind alone were pruned",
)
