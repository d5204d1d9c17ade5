"""The ledger: every claim of the papers with its number, its interval and a verdict."""

from __future__ import annotations

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.ledger import Ledger, Verdict
from headcount.report.figure import short_names
from headcount.report.papers import SPELLED
from headcount.report.section import Labelled, Section, table_of
from headcount.report.table import Column, Rows, Table, headings, interval


def _answer(record: Record[Ledger]) -> str:
    parts = record.parts
    held, refuted, undecided = (parts.count(holds) for holds in (True, False, None))
    unmeasured = sum(not verdict.models for verdict in parts.verdicts)
    counts = [
        f"{held} {'holds' if held == 1 else 'hold'}",
        f"{refuted} {'does' if refuted == 1 else 'do'} not",
        f"{undecided} {'is' if undecided == 1 else 'are'} open",
    ]
    lacking = f" ({unmeasured} for want of a record)" if unmeasured else ""
    return f"{_decided_on(parts)}{len(parts.verdicts)} claims of the papers: here {', '.join(counts)}{lacking}."


def _decided_on(parts: Ledger) -> str:
    """Number of models and seeds behind the ledger."""
    if not parts.models:  # of an earlier version
        return ""
    names = ", ".join(short_names(parts.models).values())
    seeds = f", pruned with {plural(parts.seeds, 'seed')} in all" if parts.seeds else ""
    return f"{plural(len(parts.models), 'model')} ({names}){seeds}: "


def _behind(verdict: Verdict) -> str | None:
    if not verdict.models:
        return None
    models = plural(verdict.models, "model")
    return f"{models}, {verdict.runs} runs" if verdict.runs > 1 else models


def verdict_table(labelled: Labelled) -> Table:
    columns = headings("no.", "the papers say", "here", Column("value", 2), "95% interval", "behind it", "detail")
    note = (
        "A claim holds or is refuted only if its whole interval is on one side of the threshold; otherwise it is open. "
        "The interval of a single model does not cover variation between models."
    )
    return table_of("Claims of the papers", labelled, columns, _verdict_rows, note=note)


def _tables(labelled: Labelled) -> list[Table]:
    columns = headings("no.", "statistic", "what would change it", "source")
    return [verdict_table(labelled), table_of("How each claim is decided", labelled, columns, _statistic_rows)]


def _verdict_rows(record: Record[Ledger]) -> Rows:
    return [
        [
            verdict.number, verdict.claim, verdict.word, verdict.value, interval(verdict, 2),
            _behind(verdict), verdict.detail or None,
        ]
        for verdict in record.parts.verdicts
    ]  # fmt: skip


def _statistic_rows(record: Record[Ledger]) -> Rows:
    return [
        [verdict.number, verdict.statistic, verdict.changed_by, f"{SPELLED[verdict.paper]}, {verdict.where}"]
        for verdict in record.parts.verdicts
    ]


SECTION = Section(
    order=1,
    title="The ledger",
    question="Which claims of the papers hold here?",
    studies=("ledger",),
    parts=("verdicts",),
    command="headcount study all MODEL --data DATA --out DIR",
    answer=_answer,
    method=(
        "Each claim has one statistic and one threshold, and is decided by the 95% interval of the statistic on the "
        "records of this study. Several models or seeds give a t-interval over them, which includes the variation over "
        "the examples that they share for V3, V4, V7, V12 and M4 to M9; a single one gives the interval over examples, "
        "heads, layers or relations that the statistic names. "
        "Thresholds that the papers leave open are ours and are stated with the statistic."
    ),
    tables=_tables,
)
