"""roles: what every head does on a corpus, and what the paper says of it (Voita et al. 2019, sections 4 and 5).

The record holds, head by head, confidence and the evidence for each role; the best head of each relation against the
best fixed offset (Table 1); where dependents stand (Figure 3); what the paper's claims come to on this model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from torch import nn

from headcount.corpora.frequencies import Frequencies
from headcount.corpora.sentences import Sentences
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.heads import Head
from headcount.progress import Progress, silent
from headcount.record import Record
from headcount.roles.evidence import Evidence, held
from headcount.roles.measure import Roles, roles
from headcount.roles.reading import Reading
from headcount.statistics import spearman
from headcount.studies.playing import play
from headcount.tasks.task import Task

CONFIDENT = 0.8  # the paper: every positional head is above this
_READING = {field.name for field in fields(Reading)}
_FIRST, _SECOND = {"i", "we"}, {"you"}


def look(
    model: nn.Module,
    sentences: Sentences,
    tokenizer: Any,
    *,
    name: str = "",
    data: str = "",
    frequencies: Frequencies | None = None,
    relevance: Record | None = None,
    play_on: Task | None = None,
    progress: Progress = silent,
    **options: Any,
) -> Record:
    """Measure the roles of all heads.

    relevance: a record of the heads' relevance, to go with their roles.
    play_on: a task on the same sentences; heads are replaced by their roles and what is lost is measured (`playing`).
    options: of `headcount.roles`: roles, resamples, seed, tokens, and how definitions are read.
    """
    if relevance is not None:
        _check_scores(relevance)  # before the work
    found = roles(
        model, sentences, tokenizer=tokenizer, targets=sentences.targets, frequencies=frequencies,
        progress=progress, **options,
    )  # fmt: skip
    signature = replace(
        found.signature,
        model=name,
        data=sentences.fingerprint,
        arguments={"data": data, **found.signature.arguments},
    )
    parts = parts_of(found)
    parts["skipped"] = dict(Counter(found.skipped) + sentences.skipped)
    parts["persons"] = persons(sentences)
    if relevance is not None:
        parts["relevance"] = _relevance(relevance, found)
        parts["agreement"] = _agreement(parts["relevance"], parts["confidence"])
    if play_on is not None:
        reading = {name: value for name, value in options.items() if name in _READING}
        parts["played"] = play(
            model, play_on, found, sentences, tokenizer, frequencies=frequencies, reading=reading, progress=progress
        )
    return Record("roles", signature, parts)


def parts_of(found: Roles) -> dict[str, Any]:
    """The parts of a record that come from the roles alone."""
    seen = [head for head in found.heads if found[head]]
    best = best_heads(found)
    return {
        "confidence": {str(head): _plain(found.confidence[head]._asdict()) for head in seen},
        "left_out": {str(head): found.left_out[head] for head in seen},
        "roles": {str(head): [_plain(one.to_plain()) for one in held(found[head])] for head in seen},
        "evidence": {str(head): [_plain(one.to_plain()) for one in found[head]] for head in seen},
        "best": best,
        "syntax": [row for row in best if row["role"] == "syntactic"],
        "relative": {
            label: {str(at): n for at, n in sorted(places.items())} for label, places in found.relative.items()
        },
        "relations": dict(found.relations.most_common()),
        "claims": _claims(found),
        "sentences": found.sentences,
        "trees": found.trees,
        "skipped": dict(found.skipped),
    }


def persons(sentences: Sentences) -> dict[str, int]:
    """English subjects by person: what the paper explains the difference of domains by."""
    counts: Counter[str] = Counter()
    for tree in sentences:
        if isinstance(tree, Tree):
            for arc in tree.arcs("nsubj"):
                word = tree.words[arc.dependent].lower()
                counts["1" if word in _FIRST else "2" if word in _SECOND else "3"] += 1
    return {person: counts[person] for person in "123"} if counts else {}


def best_heads(found: Roles) -> list[dict[str, Any]]:
    """For each kind, role and label the best head, chosen on one half of the sentences and measured on the other.

    Where a half has no trial, all sentences are chosen and measured on, and `held_out` says so.
    """
    by_label: dict[tuple[str, str, str], list[tuple[Head, Evidence]]] = {}
    for head in found.heads:
        for one in found[head]:
            by_label.setdefault((head.kind, one.role, one.label), []).append((head, one))
    return [_best_row(kind, rivals) for (kind, _, _), rivals in by_label.items()]


def _best_row(kind: str, rivals: list[tuple[Head, Evidence]]) -> dict[str, Any]:
    halves = rivals[0][1].halves
    apart = halves is not None and not any(np.isnan(half.value) for half in halves)
    if not apart:
        head, one = max(rivals, key=lambda pair: pair[1].value)
        return {"kind": kind, "head": str(head), **_plain(one.to_plain()), "held_out": False}
    head, one = max(rivals, key=lambda pair: pair[1].halves[0].value if pair[1].halves else pair[1].value)
    measured = one.halves[1]._asdict() if one.halves else {}
    return {"kind": kind, "head": str(head), **_plain(one.to_plain()), **measured, "held_out": True}


def rare_head(evidence: Mapping[str, Any]) -> str:
    """The head of a record's evidence that looks most at rare tokens, certainly more than chance does."""
    rows = [(head, row) for head, rows in evidence.items() for row in rows if row["role"] == "rare"]
    if not rows:
        raise UsageError("No sentence has a rare token: there is no head to show.")
    above = [(head, row) for head, row in rows if row["low"] is not None and row["low"] > row["baseline"]]
    if not above:
        most = max(row["value"] - row["baseline"] for _, row in rows)
        raise UsageError(
            "No head looks at rare tokens more than chance does with its whole interval: there is no head to show "
            f"(the highest value is {most:+.1%} from chance)."
        )
    return max(above, key=lambda pair: pair[1]["value"])[0]


def _claims(found: Roles) -> dict[str, Any]:
    """What the paper's section 5 says, in numbers of this model's encoder (or only stack)."""
    kind = next((head.kind for head in found.heads if found[head]), "")
    heads = [head for head in found.heads if head.kind == kind and found[head]]
    return {
        "kind": kind,
        "heads": len(heads),
        "by_role": dict(Counter(role for head in heads for role in {one.role for one in found[head] if one.holds})),
        "without_role": sum(not any(one.holds for one in found[head]) for head in heads),
        "positional": _positional(found, heads),
        "rare": _rare(found, heads),
    }


def _positional(found: Roles, heads: list[Head]) -> dict[str, Any]:
    """How sure positional heads are of themselves, and the others."""
    positional = {
        str(head): next(one.label for one in held(found[head]) if one.role == "positional")
        for head in heads
        if any(one.holds and one.role == "positional" for one in found[head])
    }
    sure = {name: found.confidence[name].value for name in positional}
    others = [found.confidence[head].value for head in heads if str(head) not in positional]
    return {
        "heads": positional,
        "confidence": sure,
        "above": sum(value > CONFIDENT for value in sure.values()),
        "mean_confidence_of_others": float(np.mean(others)) if others else None,
    }


def _rare(found: Roles, heads: list[Head]) -> dict[str, Any] | None:
    """The head of the first layer that looks at rare tokens most often, with its confidence among its layer's."""
    first = [head for head in heads if head.layer == heads[0].layer]
    rows = {head: {one.label: one for one in found[head] if one.role == "rare"} for head in first}
    if not any(rows.values()):
        return None
    best = max(first, key=lambda head: rows[head]["two rarest"].value)
    one, two = rows[best]["rarest"], rows[best]["two rarest"]
    order = sorted(first, key=lambda head: -float(found.confidence[head].value))
    return {
        "head": str(best),
        "rarest": one.value,
        "two_rarest": two.value,
        "chance_rarest": one.baseline,
        "chance_two_rarest": two.baseline,
        "queries": one.trials,
        "confidence": found.confidence[best].value,
        "confidence_rank_in_layer": 1 + order.index(best),
        "holds": two.holds,
    }


def _check_scores(record: Record) -> None:
    scores = record.parts.get("scores")
    if not isinstance(scores, Mapping) or not all(isinstance(value, int | float) for value in scores.values()):
        raise UsageError(f"The record of study {record.study!r} holds no scores; give one of `headcount score`.")


def _relevance(record: Record, found: Roles) -> dict[str, float]:
    scores = record.parts["scores"]
    if record.signature.weights and record.signature.weights != found.signature.weights:
        raise UsageError("The relevance was measured on another model: its weights differ from this one's.")
    return {str(head): float(scores[str(head)]) for head in found.heads if str(head) in scores and found[head]}


def _agreement(relevance: Mapping[str, float], confidence: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Whether confident heads are relevant heads, over all heads of each kind."""
    kinds: dict[str, list[str]] = {}
    for name in relevance:
        kinds.setdefault(Head.parse(name).kind, []).append(name)
    return {
        kind: _plain(
            spearman([relevance[name] for name in names], [confidence[name]["value"] for name in names])._asdict()
        )
        for kind, names in kinds.items()
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN."""
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in values.items()}
