"""Which heads a model has, where they are, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headcount.record import Record
from headcount.record.results.inspect import Cost, Inspection, SiteRow
from headcount.report.section import Labelled, Section, table_of, tables_of_alike
from headcount.report.table import Column, Rows, Table, headings


def _answer(record: Record[Inspection]) -> str:
    parts = record.parts
    answer = f"{parts.architecture} has {parts.num_heads} heads in {len(parts.sites)} sites."
    for reason in sorted({site.obstacle for site in parts.sites if site.obstacle}):
        answer += f" Masked only: {reason}."
    return answer


def _removable(site: SiteRow) -> str:
    if site.obstacle:
        return "masked only"
    return "yes" if site.indices else "empty"


def _tables(labelled: Labelled) -> list[Table]:
    def sites(record: Record[Inspection]) -> Rows:
        return [
            [
                site.site, site.num_heads,
                "".join("\u25a0" if index in site.indices else "\u00b7" for index in range(site.total)),
                site.head_dim, site.kv_heads, site.parameters_per_head, _removable(site),
            ]
            for site in record.parts.sites
        ]  # fmt: skip

    columns = headings("site", "heads", "map", "size", "k/v", Column("params/head", unit=""), "removable")
    costs = tables_of_alike(labelled, id, lambda alone: [cost_table({"": alone[0][1].parts.cost})])
    return [table_of("Sites", labelled, columns, sites), *costs, *_runtimes(labelled)]


def _runtimes(labelled: Labelled) -> list[Table]:
    """Where the model runs as it is."""

    def rows(record: Record[Inspection]) -> Rows:
        runtimes = record.parts.runtimes or {}
        return [[name, "yes" if fit.fits else "no", "; ".join(fit.words)] for name, fit in runtimes.items()]

    if not any(record.parts.runtimes for _, record in labelled):
        return []
    return [table_of("Export", labelled, headings("to", "fits", "why not, or what it costs"), rows)]


def cost_table(costs: Mapping[str, Cost]) -> Table:
    """One column per model; with two, the change between them."""
    (base, *_), two = costs.values(), len(costs) == 2
    labels = {"parameters": "parameters", "flops": f"FLOPs ({base.length} tokens)", "cache_bytes": "k/v cache bytes"}
    rows = [_cost_row(label, [getattr(cost, name) for cost in costs.values()]) for name, label in labels.items()]
    for kind in base.kinds:
        for name, label in {"num_heads": "heads", "parameters": "parameters", "flops": "FLOPs"}.items():
            rows.append(_cost_row(f"{kind} {label}", [getattr(cost.kinds[kind], name) for cost in costs.values()]))
    columns = [Column("what"), *(Column(name or "cost", unit="") for name in costs)]
    columns += [Column("change, %", 1, signed=True)] if two else []
    return Table("What one example costs", columns, rows)


def _cost_row(label: str, values: list[float | None]) -> list[Any]:
    if len(values) < 2:
        return [label, *values]
    before, after = values
    return [label, *values, 100 * (after / before - 1) if before and after is not None else None]


SECTION = Section(
    order=1,
    title="Heads",
    question="Which heads does the model have, and what do they cost?",
    studies=("inspect",),
    parts=("sites",),
    command="headcount inspect MODEL --out DIR",
    answer=_answer,
    method="The attention modules of the model are located; operations are counted on one generated example.",
    tables=_tables,
)
