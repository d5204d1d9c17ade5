"""Measured on: sentences about the texts of a result: whether they were held out, and whether they are enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headcount.plural import plural
from headcount.record import Record
from headcount.record.result import MeasuredOn, Texts
from headcount.record.results.ablate import Ablation
from headcount.record.results.prune import Pruning
from headcount.report.figure import part_of


def measured_line(record: Record) -> tuple[str, bool]:
    """The sentence, and whether the texts were held out; empty if no heads were chosen."""
    measured: MeasuredOn | None = part_of(record, "measured_on")
    if measured is None:
        return "", True
    if isinstance(record.parts, Pruning) and record.parts.named_heads and not measured.chosen_on:  # earlier versions
        measured = replace(measured, chosen_on=(Texts(None, None),), overlap=None, held_out=None)
    return measured_sentence(measured), bool(measured.held_out)


def measured_lines(labelled: Sequence[tuple[str, Record]]) -> list[tuple[str, bool]]:
    """The sentences of several records, each after the label of its record, or once if it is true of all of them."""
    lines = [(label, *measured_line(record)) for label, record in labelled]
    if len({line for _, line, _ in lines}) == 1:
        lines = [("", *lines[0][1:])]
    return [(f"{label}: {line}" if label else line, held_out) for label, line, held_out in lines if line]


def measured_sentence(measured: MeasuredOn) -> str:
    texts, overlap = _texts(measured), measured.overlap
    if not measured.chosen_on:
        return f"Measured on {texts}. No text was used to choose heads."
    if measured.held_out:
        chosen_on = " and ".join(dict.fromkeys(map(_texts, measured.chosen_on)))
        return f"Measured on {texts}, held out: heads were chosen on {chosen_on}."
    if measured.held_out is None:
        return f"Measured on {texts}. Whether heads were chosen on the same examples is unknown."
    if measured.all_seen:
        return f"NOT held out: measured on {texts}, the same that heads were chosen on."
    return f"NOT all held out: measured on {texts}, and heads were chosen on {overlap} of them."


def _texts(texts: Texts) -> str:
    """Such as `40 texts of test`."""
    spelled = "examples" if texts.examples is None else plural(texts.examples, "text")
    return f"{spelled} of {texts.split}" if texts.split else spelled


def leading(tied: Sequence[str]) -> tuple[str, str]:
    """What comes first in a ranking, and the verb for it: `a`, seems; if several tie, `a and 2 others alike`, seem."""
    if len(tied) == 1:
        return tied[0], "seems"
    return f"{tied[0]} and {plural(len(tied) - 1, 'other')} alike", "seem"


def ends_of(scores: Mapping[str, float], most: int = 3) -> tuple[list[str], list[str]]:
    """The heads with the highest and the lowest scores, at most so many of each and no head in both.

    A head is left out if it ties with one that is: the order of equal heads is that of the model.
    """
    ranked = sorted(scores, key=lambda head: -scores[head])
    values = [scores[head] for head in ranked]
    apart = [index for index in range(1, len(ranked)) if values[index - 1] > values[index]]  # where a score is lower
    most = min(most, len(ranked) // 2)
    top = max((index for index in apart if index <= most), default=0)
    bottom = min((index for index in apart if index >= len(ranked) - most), default=len(ranked))
    return ranked[:top], ranked[bottom:]


def too_few(parts: Ablation) -> str:
    """A sentence to append if no effect of this ablation could be significant; else empty."""
    if parts.distance or not parts.examples_lacking:
        return ""
    examples = max(effect.examples for effect in parts.one_out.values())
    return (
        f" {plural(examples, 'example')} cannot make any change significant, however large: "
        f"measure at least {parts.examples_lacking}."
    )
