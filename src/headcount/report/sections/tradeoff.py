"""Quality against the heads left, by several ways of choosing them (Voita et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headcount.record import Record
from headcount.report.points import Point, smaller
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.table import Column, Table, digits_for, interval


def _most_first(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: -point["keep"])


def _means(record: Record) -> dict[str, dict[int, float]]:
    """way -> heads left -> quality after training, the mean over seeds; all heads are no size of a smaller model."""
    values: dict[str, dict[int, list[float]]] = {}
    for point in _most_first(smaller(record.parts)):
        values.setdefault(point["way"], {}).setdefault(point["keep"], []).append(point["after"]["value"])
    return {
        way: {keep: sum(seed_values) / len(seed_values) for keep, seed_values in line.items()}
        for way, line in values.items()
    }


def _answer(record: Record) -> str:
    parts, means = record.parts, _means(record)
    unpruned = parts["whole"]["value"]
    digits = digits_for(unpruned)
    fewest = min(keep for line in means.values() for keep in line)
    sentences = [f"{line[fewest]:.{digits}f} by {way}" for way, line in means.items() if fewest in line]
    return (
        f"With {fewest} of {parts['gated']} heads left, {parts['metric']} is {', '.join(sentences)}, against "
        f"{unpruned:.{digits}f} with all of them.{_unlooked(parts)}"
    )


def _unlooked(parts: Mapping[str, Any]) -> str:
    """Why it is not known what the heads that are left do, where it is not."""
    reason = (parts.get("lacking") or {}).get("whole_roles")
    return f" What the heads that are left do: {reason}." if reason and not parts.get("drift") else ""


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts["whole"]["value"]) for _, record in labelled)
    tables = [_quality_table(labelled, digits)]
    compared = [(label, record) for label, record in labelled if record.parts.get("compared")]
    looked = [(label, record) for label, record in labelled if record.parts.get("drift")]
    tables += [_compared_table(compared, digits)] if compared else []
    return tables + ([_drift_table(looked)] if looked else [])


def _quality_table(labelled: Labelled, digits: int) -> Table:
    gated = any(point.get("gates") for _, record in labelled for point in record.parts["tradeoff"])

    def rows(record: Record) -> list[list[Any]]:
        return [
            [
                point["way"], point["keep"], ", ".join(f"{count} {kind}" for kind, count in point["kept"].items()),
                point["seed"], (point.get("cut") or {}).get("value"), point["after"]["value"],
                interval(point["after"].get("low"), point["after"].get("high"), digits),
                (point.get("seconds") or {}).get("total"), *([_settled(point)] if gated else []),
            ]
            for point in _most_first(record.parts["tradeoff"])
        ]  # fmt: skip

    columns = [
        Column("way"), Column("heads left"), Column("by kind"), Column("seed"), Column("just cut", digits),
        Column("at the end", digits), Column("95% interval"), Column("seconds", 0),
        *([Column("gates settled, %", 0)] if gated else []),
    ]  # fmt: skip
    note = "A gate has settled when its mean is within .05 of 0 or 1 at the end of the steps with gates."
    title = f"{labelled[0][1].parts['metric']} by heads left"
    return table_of(title, labelled, columns, rows, note=note if gated else "")


def _settled(point: Point) -> float | None:
    gates = point.get("gates")
    return 100 * gates["settled"] if gates else None


def _compared_table(labelled: Labelled, digits: int) -> Table:
    """One comparison a row, those against the same model together: side by side they are wider than a page."""
    several = any(len(row["seeds"]) > 1 for _, record in labelled for row in record.parts["compared"])

    def rows(record: Record) -> list[list[Any]]:
        by_reference = {
            "lost": "all heads",
            "lost_tuned": "all heads, tuned as long",
            "against": f"{record.parts.get('against', 'another way')}, as many heads",
        }
        return [
            [
                by_reference[name], row["way"], row["keep"], row[name]["difference"],
                interval(row[name]["low"], row[name]["high"], digits),
                *([_by_seed(row[name], digits)] if several else []),
            ]
            for name in by_reference
            for row in record.parts["compared"]
            if name in row
        ]  # fmt: skip

    columns = [
        Column("against"), Column("way"), Column("heads left"), Column("difference", digits, signed=True),
        Column("95% interval"), *([Column("seed by seed")] if several else []),
    ]  # fmt: skip
    return table_of("Ways compared on the same examples", labelled, columns, rows)


def _by_seed(comparison: Mapping[str, Any], digits: int) -> str | None:
    """What the interval over examples does not hold."""
    each = comparison.get("by_seed", {}).values()
    return ", ".join(Column("", digits, signed=True).text(value) for value in each) or None


def _drift_table(labelled: Labelled) -> Table:
    """What became of the roles of the heads that are left, most heads first."""

    def rows(record: Record) -> list[list[Any]]:
        cells = []
        for row in sorted(record.parts["drift"], key=lambda row: -row["keep"]):
            roles = ", ".join(f"{role} {n['whole']} \u2192 {n['left']}" for role, n in row["roles"].items())
            functions = f"{row['functions']['left']} of {row['functions']['whole']}"
            changes = [row[name] for name in ("same", "gained", "lost", "exchanged")]
            cells.append([row["way"], row["heads"], row["seed"], roles or "none", *changes, functions])
        return cells

    columns = [Column("way"), Column("heads left"), Column("seed"), Column("roles, in the whole model \u2192 now")]
    columns += [Column(what) for what in ("same roles", "more", "fewer", "others", "functions left")]
    note = (
        "Heads that read the sentences, by what became of their roles. A function is a role with its label, such as "
        "syntactic obj v->o: those that heads of the whole model have, and how many of them some head still has."
    )
    return table_of("What the heads that are left do", labelled, columns, rows, note=note)


def _printed(record: Record) -> list[Printed]:
    means = _means(record)
    best_way = next(iter(means))
    values = ", ".join(f"{keep}: {value:.2f}" for keep, value in means[best_way].items())
    ours = f"{best_way} {values}" if record.parts.get("pruned") != "heads of all kinds" else None
    return [
        Printed("WMT, encoder heads left: BLEU", "48: 29.6, 19: plateau, 10: 29.5, 5: 29.0, 2: 28.25", ours),
        Printed("subtitles, encoder heads left: BLEU", "48: 32.4, 17: plateau, 9 and 4: 32.15, 1: 31.7", None),
        Printed("functions that are left (subtitles)", "17 of 48 heads: all of them", _functions(record, best_way)),
        Printed(
            "p(0), p(1) of a gate with beta .5, log a = 0; 2; \u22123", ".23, .23; .04, .69; .86, .01", _heaps(record)
        ),
    ]


def _functions(record: Record, way: str) -> str | None:
    way_rows = [row for row in record.parts.get("drift") or () if row["way"] == way]
    sentences = [
        f"{row['heads']} of {len(record.parts['whole_roles'])} heads: {row['functions']['left']} of "
        f"{row['functions']['whole']}"
        for row in sorted(way_rows, key=lambda row: -row["heads"])
    ]
    return "; ".join(dict.fromkeys(sentences)) or None


def _heaps(record: Record) -> str | None:
    gates = [gate for gate in record.parts.get("hard_concrete") or () if gate["beta"] == 0.5]
    shares = "; ".join(f"{gate['zero']:.2f}, {gate['one']:.2f}" for gate in gates)
    return shares.replace("0.", ".") or None


SECTION = Section(
    order=53,
    title="The trade-off",
    question="Do learned gates beat a ranking?",
    studies=("tradeoff",),
    parts=("tradeoff", "whole"),
    command="headcount study tradeoff MODEL --keep 12,8,3 --task TASK --data DATA --out DIR",
    answer=_answer,
    how=(
        "Every way that trains gets the same number of steps: a rank is fine-tuned for as many as gates and "
        "fine-tuning together; from scratch has new random weights under the same heads. untuned, fisher, greedy and "
        "what is compensated (+) do not train unless tuned or distilled is added; what is distilled also learns from "
        "the whole model's predictions. What the heads that are left do is measured in the whole model and again in "
        "the smaller one, on the same sentences."
    ),
    tables=_tables,
    figures=("tradeoff", "kept-roles", "tradeoff-time"),
    printed=_printed,
    when=lambda record: bool(record.parts["tradeoff"]),
    without="other processes are at its first points",
)
