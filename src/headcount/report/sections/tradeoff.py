"""Quality against remaining heads, by several ways of choosing them (Voita et al. 2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.tradeoff import Difference, Point, Tradeoff
from headcount.report.encoder_curve import encoder_curve
from headcount.report.points import pruned_heads, shown_way, smaller, way_heading
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, digits_for, headings, interval, parts_of_variance


def _most_first(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: -point.keep)


def _means(record: Record) -> dict[str, dict[int, float]]:
    """way -> remaining heads -> mean quality after training over seeds, without models with all heads."""
    values: dict[str, dict[int, list[float]]] = {}
    for point in _most_first(smaller(record.parts)):
        values.setdefault(point.way, {}).setdefault(point.keep, []).append(point.after.value)
    return {
        way: {keep: sum(seed_values) / len(seed_values) for keep, seed_values in line.items()}
        for way, line in values.items()
    }


def _answer(record: Record) -> str:
    parts, means = record.parts, _means(record)
    unpruned, seeds = parts.whole.value, plural(len({point.seed for point in parts.points}), "seed")
    digits = digits_for(unpruned)
    fewest = min(keep for line in means.values() for keep in line)
    sentences = [
        f"{line[fewest]:.{digits}f} by {way_heading(parts, way)}" for way, line in means.items() if fewest in line
    ]
    return (
        f"With {fewest} of {parts.gated} {pruned_heads(parts)} left, {parts.metric} is {', '.join(sentences)}, against "
        f"{unpruned:.{digits}f} with all of them (1 model, {seeds}).{_unlooked(parts)}"
    )


def _unlooked(parts: Tradeoff) -> str:
    """The reason why the roles of the remaining heads were not measured; empty if they were."""
    reason = parts.lacking.get("whole_roles")
    return f" Roles of the remaining heads: {reason}." if reason and not parts.drift else ""


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(digits_for(record.parts.whole.value) for _, record in labelled)
    tables = [_quality_table(labelled, digits)]
    compared = [(label, record) for label, record in labelled if record.parts.compared]
    looked = [(label, record) for label, record in labelled if record.parts.drift]
    tables += [_compared_table(compared, digits)] if compared else []
    return tables + ([_drift_table(looked)] if looked else [])


def _quality_table(labelled: Labelled, digits: int) -> Table:
    gated = any(point.gates for _, record in labelled for point in record.parts.points)

    def rows(record: Record) -> Rows:
        return [
            [
                point.way, point.keep, ", ".join(f"{count} {kind}" for kind, count in point.kept_by_kind.items()),
                point.seed, point.cut and point.cut.value, point.after.value,
                interval(point.after, digits), round(point.seconds.total, 1),
                *([point.gates and 100 * point.gates.settled] if gated else []),
            ]
            for point in _most_first(record.parts.points)
        ]  # fmt: skip

    columns = headings(
        "way", "heads left", "by kind", "seed", Column("before tuning", digits), Column("at the end", digits),
        "95% interval", Column("seconds", 1), *([Column("gates settled, %", 0)] if gated else []),
    )  # fmt: skip
    note = "A gate has settled when its mean is within .05 of 0 or 1 at the end of the steps with gates."
    title = f"{labelled[0][1].parts.metric} by heads left"
    return table_of(title, labelled, columns, rows, note=note if gated else "")


def _compared_table(labelled: Labelled, digits: int) -> Table:
    """One comparison per row, grouped by reference: side by side they would be wider than a page."""
    several = any(len(row.seeds) > 1 for _, record in labelled for row in record.parts.compared)

    def rows(record: Record) -> Rows:
        by_reference = {
            "lost": "all heads",
            "lost_tuned": "all heads, tuned as long",
            "against": f"{record.parts.against}, as many heads",
        }
        return [
            [
                reference, row.way, row.keep, compared.difference, interval(compared, digits),
                *([_by_seed(compared, digits), parts_of_variance(compared.variance)] if several else []),
            ]
            for name, reference in by_reference.items()
            for row in record.parts.compared
            if (compared := getattr(row, name)) is not None
        ]  # fmt: skip

    columns = headings(
        "against", "way", "heads left", Column("difference", digits, signed=True), "95% interval",
        *([Column("seed by seed"), Column("variance")] if several else []),
    )  # fmt: skip
    behind = dict.fromkeys(record.parts.behind for _, record in labelled)
    note = f"Behind the intervals: {'; '.join(behind)}."
    note += " Variance: of the mean over runs, by what it varies with." if several else ""
    return table_of("Ways compared on the same examples", labelled, columns, rows, note=note)


def _by_seed(comparison: Difference, digits: int) -> str | None:
    each = comparison.by_seed.values()
    return ", ".join(Column("", digits, signed=True).text(value) for value in each) or None


def _drift_table(labelled: Labelled) -> Table:
    """Changes of the roles of the remaining heads, most heads first."""

    def rows(record: Record) -> Rows:
        cells = []
        for row in sorted(record.parts.drift, key=lambda row: -row.keep):
            now = row.changes
            roles = ", ".join(f"{role} {count.whole} \u2192 {count.left}" for role, count in now.by_role.items())
            functions = f"{now.functions.left} of {now.functions.whole}"
            changes = [now.same, now.gained, now.lost_roles, now.exchanged]
            cells.append([row.way, now.num_heads, row.seed, roles or "none", *changes, functions])
        return cells

    columns = headings("way", "heads left", "seed", "roles, in the whole model \u2192 now")
    columns += [Column(what) for what in ("same roles", "more", "fewer", "others", "functions left")]
    note = (
        "Heads that read the sentences, by what became of their roles. A function is a role with its label, such as "
        "syntactic obj v->o: those that heads of the whole model have, and how many of them some head still has."
    )
    return table_of("Roles of the remaining heads", labelled, columns, rows, note=note)


def _printed(record: Record) -> list[Printed]:
    parts, way = record.parts, shown_way(record.parts)
    points, kinds = _means(record).get(way, {}).items(), parts.pruned.removesuffix(" heads").split(" and ")
    return [
        *encoder_curve(points, kinds=kinds, metric=parts.metric, way=way),
        Printed("functions that are left (subtitles)", "17 of 48 heads: all of them", _functions(record, way)),
        Printed(
            "p(0), p(1) of a gate with beta .5, log a = 0; 2; \u22123", ".23, .23; .04, .69; .86, .01", _heaps(record)
        ),
    ]


def _functions(record: Record, way: str) -> str | None:
    changes = [row.changes for row in record.parts.drift or () if row.way == way]
    sentences = [
        f"{row.num_heads} of {len(record.parts.whole_roles or ())} heads: {row.functions.left} of {row.functions.whole}"
        for row in sorted(changes, key=lambda row: -row.num_heads)
    ]
    return "; ".join(dict.fromkeys(sentences)) or None


def _heaps(record: Record) -> str | None:
    gates = [gate for gate in record.parts.hard_concrete or () if gate.beta == 0.5]
    shares = "; ".join(f"{gate.zero:.2f}, {gate.one:.2f}" for gate in gates)
    return shares.replace("0.", ".") or None


SECTION = Section(
    order=53,
    title="The trade-off",
    question="Do learned gates beat a ranking?",
    studies=("tradeoff",),
    parts=("points", "whole"),
    command="headcount study tradeoff MODEL --keep 40%,30% --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "Every way that trains but scratch gets the same number of steps: a ranking is fine-tuned for as many steps as "
        "gates and fine-tuning take together. scratch starts from random weights with the same heads and has a number "
        "of steps of its own (--scratch-steps). untuned, fisher, "
        "greedy and compensated ways (+) are not trained unless tuned or distilled is added; distilled ways also "
        "learn from the whole model's predictions. Roles are measured in the whole and in the smaller model, on the "
        "same sentences."
    ),
    tables=_tables,
    alike=metric_of,
    figures=("tradeoff", "kept-roles", "tradeoff-time"),
    printed=_printed,
    when=lambda record: bool(record.parts.points),
    without="other processes are still working on its first points",
)
