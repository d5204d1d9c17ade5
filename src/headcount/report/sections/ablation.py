"""Which heads matter: every head masked alone (Michel et al. 2019, section 3)."""

from __future__ import annotations

from headcount.record import Record
from headcount.record.results.ablate import Ablation
from headcount.report.headmap import HeadMap
from headcount.report.measured import leading, too_few
from headcount.report.section import Labelled, Printed, Section, metric_of, table_of
from headcount.report.table import Column, Rows, Table, digits_for, headings, interval


def _answer(record: Record[Ablation]) -> str:
    parts = record.parts
    effects, alpha, metric = parts.one_out, parts.alpha, parts.metric
    significant = [effect for effect in effects.values() if effect.corrected < alpha]
    better = sum(parts.harm(effect) < 0 for effect in significant)
    tied = parts.worst(effects)
    worst, (leader, seems) = tied[0], leading(tied)
    difference = effects[worst].difference
    change = Column("", digits_for(difference), signed=True).text(difference)
    if parts.distance:
        order = sorted(effect.difference for effect in effects.values())
        moves = "moves" if parts.harms_most(worst, effects) else "seems to move"
        return (
            f"Masking any of {len(effects)} heads moves the output: {metric} is {order[len(order) // 2]:.1g} without "
            f"the median head and {order[-1]:.2g} without {worst}, which {moves} it most. A distance is never "
            "negative, so only sizes can be compared: a value above zero does not by itself mean that a head matters."
        )
    harmful = parts.harm(effects[worst]) > 0
    sure = effects[worst].corrected < alpha and parts.harms_most(worst, effects)
    matters = "matters most" if sure else f"{seems} to matter most"
    most = f"{leader} {matters}" if harmful else f"no head's absence harmed it here, not even that of {worst}"
    return (
        f"{metric} is {parts.value:.{digits_for(parts.value)}f} with all heads. Of {len(effects)} heads "
        f"{len(significant)} change it significantly when masked alone (p < {alpha:g} after Holm's correction; "
        f"{parts.summary.significant} before), {better} of them for the better; {most} "
        f"({metric} {change}).{too_few(parts)}{_stopped(parts)}"
    )


def _stopped(parts: Ablation) -> str:
    """A sentence to append if heads were measured on fewer examples than the whole model; else empty."""
    if not parts.stopped_early:
        return ""
    counts = [effect.examples for effect in parts.one_out.values()]
    return (
        f" Heads were measured until it was certain that they matter, on {min(counts)} to {max(counts)} examples: "
        f"{parts.metric} with a head off is of these, and only its change can be compared."
    )


def _tables(labelled: Labelled) -> list[Table]:
    digits = max(
        digits_for(max(abs(effect.difference) for effect in record.parts.one_out.values())) for _, record in labelled
    )
    columns = headings(
        "head", Column("with it off", digits), Column("change", digits, signed=True), "95% interval", Column("p", 4),
        Column("corrected p", 4),
    )  # fmt: skip

    def rows(record: Record[Ablation]) -> Rows:
        tested = not record.parts.distance
        effects = sorted(record.parts.one_out.items(), key=lambda item: -abs(item[1].difference))
        return [
            [
                head, effect.value, effect.difference, interval(effect, digits),
                effect.p if tested else None, effect.corrected if tested else None,
            ]
            for head, effect in effects
        ]  # fmt: skip

    title = f"Change of {labelled[0][1].parts.metric} without each head"
    return [table_of(title, labelled, columns, rows, ranked=True)]


def _sketch(record: Record[Ablation]) -> HeadMap:
    parts = record.parts
    differences = {head: effect.difference for head, effect in parts.one_out.items()}
    significant = [head for head, effect in parts.one_out.items() if effect.corrected < parts.alpha]
    return HeadMap(differences, signed=True, starred=None if parts.distance else significant)


def _printed(record: Record[Ablation]) -> list[Printed]:
    parts = record.parts
    encoder = {head: effect for head, effect in parts.one_out.items() if head.startswith("encoder.")}
    significant = [effect for effect in encoder.values() if effect.p < parts.alpha]
    better = sum(parts.harm(effect) < 0 for effect in significant)
    unpruned = f"{parts.metric} {parts.value:.{digits_for(parts.value)}f}"
    tested = encoder and not parts.distance
    counted = f"{len(significant)} of {len(encoder)}, {better} better without" if tested else None
    return [
        Printed("the whole model", "BLEU 36.05 (WMT14 English-French)", unpruned),
        Printed(f"encoder heads with p < {parts.alpha:g}, not corrected", "8 of 96, 4 better without", counted),
    ]


SECTION = Section(
    order=20,
    title="One head out",
    question="Which heads does the model need?",
    studies=("ablate",),
    parts=("one_out",),
    command="headcount ablate MODEL --task TASK --data DATA --out DIR",
    answer=_answer,
    method=(
        "Each head is masked alone and the model is evaluated on the same examples. Intervals and p-values are of the "
        "paired difference over examples; corrected p-values use Holm's method over all heads of the model."
    ),
    tables=_tables,
    alike=metric_of,
    sketch=_sketch,
    figures=("ablation-map", "ablation-histogram"),
    printed=_printed,
)
