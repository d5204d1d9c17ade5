"""Payload: the data of every head for the interactive part of the page, as plain JSON with lists by head.

Values of heads are lists in the order of `heads`; a head without a value has None. A mask is a string of 1 and 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headcount.errors import UnknownHead
from headcount.heads import PAPER_ROLES, Head
from headcount.record import Record
from headcount.record.codec import encode
from headcount.record.results.ablate import Ablation
from headcount.record.results.attention import AttentionMap
from headcount.record.results.bench import Speed
from headcount.record.results.curves import Curves
from headcount.record.results.examples import Examples
from headcount.record.results.inspect import Inspection
from headcount.record.results.prune import Pruning
from headcount.record.results.prune_sweep import Sweep
from headcount.record.results.roles import RolesFound
from headcount.record.results.rules import Rules
from headcount.record.results.score import Scoring
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.apart import arguments_apart, pruned_by
from headcount.report.figure import picked, short_names
from headcount.report.palette import KINDS, role_colour
from headcount.report.subject import Subject
from headcount.report.verdicts import verdict

EXAMPLES = 16  # most sentences on the page
CARD_EVIDENCE = 8  # most lines of evidence on a card
_DIGITS = 10  # of numbers: the page rounds them again, and subtracts them, so it needs more than it shows


def payload(all_subjects: Sequence[Subject]) -> dict[str, Any]:
    scores = [record for subject in all_subjects for record in subject.of("score")]
    subjects = [_subject(subject, scores) for subject in all_subjects]
    roles = {evidence["role"] for subject in subjects for held in subject["roles"] or () for evidence in held or ()}
    ordered = [role for role in PAPER_ROLES if role in roles] + sorted(roles - {*PAPER_ROLES})
    return {
        "subjects": subjects,
        "roleColours": {role: role_colour(role) for role in ordered},
        "kindColours": dict(KINDS),
    }


def _subject(subject: Subject, scores: Sequence[Record]) -> dict[str, Any]:
    heads, roles = _heads(subject), subject.first(RolesFound)
    return {
        "label": subject.label,
        "heads": heads,
        "measures": _measures(subject, heads, scores),
        "roles": _by_head(roles.roles if roles else None, heads),
        "evidence": _by_head(_clearest(roles) if roles else None, heads),
        "effects": _effects(subject, heads),
        "played": _played(roles, heads),
        "curves": _curves(subject, heads),
        "gone": _gone(subject),
        "speed": _speed(subject),
        "examples": _examples(subject),
    }


def _heads(subject: Subject) -> list[str]:
    """Names of all heads in the records: kinds in order of occurrence, layers and heads by number."""
    names: dict[str, None] = {}
    for record in subject.records:
        for head_names in _named(record):
            names.update(dict.fromkeys(head_names))
    heads: list[Head] = []
    for name in names:
        try:
            heads.append(Head.parse(name))
        except UnknownHead:
            continue
    kinds = list(dict.fromkeys(head.kind for head in heads))
    return [str(head) for head in sorted(heads, key=lambda head: (kinds.index(head.kind), head.layer, head.index))]


def _named(record: Record) -> Iterable[Iterable[str]]:
    parts = record.parts
    if isinstance(parts, Ablation):
        yield parts.one_out
    elif isinstance(parts, Scoring):
        yield parts.scores
    elif isinstance(parts, Rules):
        yield from parts.by_rule.values()
    elif isinstance(parts, RolesFound):
        yield parts.confidence
    elif isinstance(parts, Curves):
        yield from (curve.points[0].heads for curve in parts.curves)
    elif isinstance(parts, Examples):
        yield from (example.attention for example in parts.examples)
    elif isinstance(parts, Pruning):
        yield from (parts.heads, parts.removed_heads)
    elif isinstance(parts, Tradeoff):
        yield parts.known_heads
    elif isinstance(parts, Inspection):
        yield from ([f"{site.site}.{index}" for index in site.indices] for site in parts.sites)
    elif isinstance(parts, Sweep):
        yield parts.known_heads


def _measures(subject: Subject, heads: list[str], scores: Sequence[Record]) -> list[dict[str, Any]]:
    """Measures by which the map can be coloured.

    form: "diverging" if there are values on both sides of 0. harm: the sign of a change for the worse; 0 if the values
    are not changes of quality. scores: of all subjects; those with other arguments are other measures.
    """
    measures: list[dict[str, Any]] = []

    def add(label: str, values: Any, *, harm: int = 0, low: Any = None, high: Any = None) -> None:
        numbers = [_number((values or {}).get(head)) for head in heads]
        real = [number for number in numbers if number is not None]
        if not real:
            return
        form = "diverging" if harm or min(real) < 0 < max(real) else "sequential"
        labels = {measure["label"] for measure in measures}
        name, repeat = label, 2
        while name in labels:
            name, repeat = f"{label} ({repeat})", repeat + 1
        bounds = {
            side: [_number(limits.get(head)) for head in heads]
            for side, limits in (("low", low), ("high", high))
            if limits
        }
        measures.append({"label": name, "form": form, "harm": harm, "values": numbers, **bounds})

    for record in subject.records:
        parts = record.parts
        if isinstance(parts, Ablation):
            harm = 0 if parts.distance else -1 if parts.higher_is_better else 1
            for data, effects in (("", parts.one_out), (", second data", parts.other.one_out if parts.other else {})):
                low, change, high = (
                    {head: getattr(effect, side) for head, effect in effects.items()}
                    for side in ("low", "difference", "high")
                )
                label = f"change of {parts.metric} without it{data}"
                add(label, change, harm=harm, low=low, high=high)
        elif isinstance(parts, Scoring):
            label = f"{parts.method} score{arguments_apart(record, scores)}"
            add(label, parts.scores, low=parts.low, high=parts.high)
        elif isinstance(parts, Rules):
            for rule, values in parts.by_rule.items():
                add(f"relevance, {rule}", values)
        elif isinstance(parts, RolesFound):
            low, confidence, high = (
                {head: getattr(interval, side) for head, interval in parts.confidence.items()}
                for side in ("low", "value", "high")
            )
            add("confidence", confidence, low=low, high=high)
            add("relevance", parts.relevance)
        elif isinstance(parts, Pruning) and parts.gates:
            add(f"mean of its gate, {parts.method}", parts.gates.means)
    for curve in _curves(subject, heads):
        if curve["label"] == f"by {curve['order']}" and curve["whole"]:
            goes = {head: _goes_at(curve["points"], index) for index, head in enumerate(heads)}
            add(f"% pruned when it goes, by {curve['order']}", goes)
    return measures


def _goes_at(points: Sequence[Mapping[str, Any]], index: int) -> float | None:
    """Percentage of removed heads at the first step without the head."""
    return next((round(100 * point["share"], 1) for point in points if point["mask"][index] == "0"), None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")


def _by_head(values: Mapping[str, object] | None, heads: list[str]) -> list[Any] | None:
    return None if values is None else [_rounded(encode(values.get(head))) for head in heads]


def _clearest(roles: RolesFound) -> dict[str, list[dict[str, Any]]]:
    """The evidence of each head that its card shows: what holds first, then what is nearest to its threshold."""
    fields = ("role", "label", "value", "low", "high", "baseline")
    evidence = {}
    for head, held in roles.roles.items():
        measured = [item for item in roles.evidence.get(head, held) if math.isfinite(item.value)]
        measured.sort(key=lambda item: (not item.holds, item.threshold - item.value))
        evidence[head] = [{**picked(item, *fields), "verdict": verdict(item)} for item in measured[:CARD_EVIDENCE]]
    return evidence


def _rounded(value: Any) -> Any:
    """Plain JSON with numbers of so many digits that what the page shows of them is right."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return {name: _rounded(item) for name, item in value.items()} if isinstance(value, dict) else value


def _effects(subject: Subject, heads: list[str]) -> dict[str, Any] | None:
    parts = subject.first(Ablation)
    if parts is None:
        return None
    return {
        "metric": parts.metric, "alpha": parts.alpha, "better": parts.higher_is_better,
        "distance": parts.distance, "heads": _by_head(parts.one_out, heads),
    }  # fmt: skip


def _played(roles: RolesFound | None, heads: list[str]) -> dict[str, Any] | None:
    """What is lost if a head does nothing but its role, and without the head; shares of what is lost for certain."""
    played = roles.played if roles else None
    if played is None:
        return None
    shares = played.certain
    by_head = {
        head: {**picked(row, "role", "label", "off", "alone"), "share_kept": shares.get(head)}
        for head, row in played.by_head.items()
    }
    return {"metric": played.metric, "heads": _by_head(by_head, heads)}


def _curves(subject: Subject, heads: list[str]) -> list[dict[str, Any]]:
    """Lines of pruning step by step: of the whole model, of one kind, of smaller models that were made."""
    lines = []
    for record in subject.of("curves"):
        parts: Curves = record.parts
        scale = {"metric": parts.metric, "higher_is_better": parts.higher_is_better}
        for curve in (*parts.curves, *(parts.by_kind or ())):
            of_all_kinds = curve in parts.curves
            kinds = "" if of_all_kinds else f", {' and '.join(curve.kinds)} only"
            seed = "" if curve.seed is None else f" {curve.seed + 1}"
            label = f"by {curve.order}{seed}{kinds}"
            control = curve.order == "random"
            points = encode(curve.points)
            lines.append(_line(label, curve.order, points, scale, heads, of_all_kinds, control=control))
    several = len(subject.of("tradeoff")) > 1
    for record in subject.of("tradeoff"):
        lines += _ways(record.parts, heads, f", {record.parts.pruned}" if several else "")
    for record in subject.of("prune"):
        pruned: Pruning = record.parts
        if pruned.curve:
            names = pruned.method, pruned_by(record, subject.of("prune"))
            order, name = (text.removeprefix("rank-") for text in names)
            scale = {"metric": pruned.metric, "higher_is_better": pruned.higher_is_better}
            label = f"pruned by {name}, {pruned.stage_of_steps}"
            lines.append(_line(label, order, encode(pruned.curve), scale, heads, True))
    return lines


def _ways(parts: Tradeoff, heads: list[str], pruned: str) -> list[dict[str, Any]]:
    """Ways of choosing heads, each a line from the whole model down; most were trained after removal."""
    if len(heads) < sum(parts.heads_by_site.values()):
        return []  # an older record of a model that was pruned before: shares of all heads are unknown
    scale = {"metric": parts.metric, "higher_is_better": parts.higher_is_better}
    unpruned = {**encode(parts.whole), "removed": 0, "share": 0.0, "heads": heads}
    lines = []
    for way, seed in dict.fromkeys((point.way, point.seed) for point in parts.points):
        way_points = [point for point in parts.points if (point.way, point.seed) == (way, seed)]
        points = [unpruned]
        for point in sorted(way_points, key=lambda point: -point.keep):
            gone = len(heads) - len(point.heads)
            points.append(
                {**encode(point.after), "removed": gone, "share": gone / max(1, len(heads)), "heads": point.heads}
            )
        trained = "trained" if all(point.steps for point in way_points) else "not trained"
        group = f"{trained}, {way}{pruned}"
        lines.append(_line(f"{group}, seed {seed}", way, points, scale, heads, True, group=group))
    return lines


def _line(
    label: str,
    order: str,
    points: Sequence[Mapping[str, Any]],
    parts: Mapping[str, Any],
    heads: list[str],
    of_all_kinds: bool,
    *,
    group: str = "",
    control: bool = False,
) -> dict[str, Any]:
    """Points of a line. `share`: of all heads, also where only one kind may go; as recorded if heads are not named.

    group: the entry of its legend, which the seeds of a way share; its label if it has none. control: an order that
    measures nothing, which other curves are compared with.
    """
    line_points = []
    total = len(points[0].get("heads") or ()) if points else 0
    for point in points:
        heads_left = set(point.get("heads") or ())
        share = point["removed"] / total if total else point["share"]
        line_points.append(
            {
                **{name: _number(point.get(name)) for name in ("removed", "value", "low", "high")},
                "share": _number(share),
                "mask": "".join("1" if head in heads_left else "0" for head in heads),
            }
        )
    named = bool(heads) and any(point.get("heads") for point in points)
    return {
        "label": label, "group": group or label, "order": order, "control": control, "whole": of_all_kinds and named,
        "known": named, "metric": parts["metric"], "better": parts["higher_is_better"], "points": line_points,
    }  # fmt: skip


def _gone(subject: Subject) -> list[dict[str, Any]]:
    """Heads removed by each method: name of the method -> names of heads."""
    rows = []
    for record in subject.of("prune"):
        removed = list(record.parts.removed_heads)
        rows.append({"label": f"{record.parts.method} ({len(removed)} gone)", "heads": removed})
    all_heads = set(_heads(subject))
    for record in subject.of("prune-sweep"):
        for penalty, point in record.parts.sweep.items():
            gone = sorted(all_heads - set(point.heads))
            rows.append({"label": f"{record.parts.method}, penalty {penalty}", "heads": gone})
    return rows


def _speed(subject: Subject) -> list[dict[str, Any]]:
    """Timed models with a known number of heads, which exports have not: their speed relative to the first."""
    rows = []
    for record in subject.of("bench"):
        parts: Speed = record.parts
        names = short_names(parts.models)
        for row in parts.rows:
            heads = parts.models[row.model].stated_heads
            if heads is not None:
                timed = encode(picked(row, "what", "batch", "length", "faster", "low", "high"))
                rows.append({"heads": heads, "model": names[row.model], **timed})
    return rows


def _examples(subject: Subject) -> list[dict[str, Any]]:
    examples: list[dict[str, Any]] = [
        encode(example) for record in subject.of("examples") for example in record.parts.examples
    ]
    for record in subject.of("attention"):
        parts: AttentionMap = record.parts
        try:
            kind = Head.parse(parts.head).kind
        except UnknownHead:
            continue
        examples.append(
            {
                "sides": {kind: ["queries", "keys"]},
                "tokens": {"queries": parts.queries, "keys": parts.keys},
                "tree": None,
                "attention": {parts.head: [" ".join(f"{weight:.3g}" for weight in row) for row in parts.weights]},
            }
        )
    return examples[:EXAMPLES]
