"""roles: the roles of every head on a corpus, and the numbers of the paper (Voita et al. 2019, sections 4 and 5).

The record holds, head by head, confidence and the evidence for each role; the best head of each relation against the
best fixed offset (Table 1); the offsets of dependents (Figure 3); and the numbers of the paper's claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from headcount.corpora.frequencies import Frequencies
from headcount.corpora.sentences import Sentences
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.head_roles.evidence import HalvedEvidence, held
from headcount.head_roles.measure import Roles, roles
from headcount.head_roles.reading import Reading
from headcount.heads import Head, sites_of
from headcount.progress import Progress, silent
from headcount.record import Record
from headcount.record.results.roles import Best, Evidence, PaperNumbers, PositionalHeads, RareHead, RolesFound
from headcount.record.results.score import Scoring
from headcount.statistics import Correlation, spearman
from headcount.studies.playing import play, texts_of
from headcount.tasks.task import Task
from headcount.tasks.texts import warn_of_repeats

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONFIDENT = 0.8  # the paper: every positional head is above this
_READING = {field.name for field in fields(Reading)}
_ENGLISH = {"i": "1", "we": "1", "you": "2", **dict.fromkeys(("he", "she", "it", "they"), "3")}


def look(
    model: nn.Module,
    sentences: Sentences,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str = "",
    data: str = "",
    frequencies: Frequencies | None = None,
    relevance: Record | None = None,
    play_on: Task | None = None,
    progress: Progress = silent,
    **options: Any,
) -> Record[RolesFound]:
    """Measure the roles of all heads.

    relevance: a record of the heads' relevance, to add to the roles.
    play_on: a task on the same sentences, on which heads are replaced by their roles (`playing`).
    options: of `hc.roles`: roles, resamples, seed, tokens, and variants of the definitions.
    """
    if relevance is not None and not isinstance(relevance.parts, Scoring):
        raise UsageError(
            f"The record of study {relevance.study!r} has no scores; give one written by `headcount score`."
        )
    warn_of_repeats(texts_of(sentences))
    measured = roles(
        model, sentences, tokenizer=tokenizer, targets=sentences.targets, frequencies=frequencies,
        progress=progress, **options,
    )  # fmt: skip
    signature = replace(
        measured.signature,
        model=name,
        data=sentences.fingerprint,
        arguments={"data": data, **measured.signature.arguments},
    )
    result = _result(measured, sentences, _relevance(relevance, measured) if relevance is not None else None)
    if play_on is not None:
        reading = {name: value for name, value in options.items() if name in _READING}
        played = play(
            model, play_on, measured, sentences, tokenizer, frequencies=frequencies, reading=reading, progress=progress
        )
        result = replace(result, played=played)
    return Record("roles", signature, result)


def _result(measured: Roles, sentences: Sentences, relevance: Mapping[str, float] | None) -> RolesFound:
    seen = [head for head in measured.heads if measured[head]]
    return RolesFound(
        confidence={str(head): measured.confidence[head] for head in seen},
        left_out={str(head): measured.left_out[head] for head in seen},
        roles={str(head): tuple(item.plain() for item in held(measured[head])) for head in seen},
        evidence={str(head): tuple(item.plain() for item in measured[head]) for head in seen},
        best=best_heads(measured),
        relative={
            label: {str(offset): count for offset, count in sorted(offsets.items())}
            for label, offsets in measured.relative.items()
        },
        relations=dict(measured.relations.most_common()),
        paper=_paper_numbers(measured),
        sentences=measured.sentences,
        trees=measured.trees,
        skipped=dict(Counter(measured.skipped) + sentences.skipped),
        persons=persons(sentences),
        relevance=relevance,
        agreement=_agreement(relevance, measured.confidence) if relevance is not None else None,
    )


def persons(sentences: Sentences) -> dict[str, int]:
    """Subjects by person, with which the paper explains the difference between domains; empty if it is unknown.

    By the features of the trees, where subjects without a person are nouns. Without features, by English pronouns: if
    no subject is one, the sentences are not known to be English.
    """
    trees = [tree for tree in sentences if isinstance(tree, Tree)]
    subjects = [(tree, arc.dependent) for tree in trees for arc in tree.arcs("nsubj")]
    persons = [tree.persons[index] if tree.persons else "" for tree, index in subjects]
    if not any(persons):
        persons = [_ENGLISH.get(tree.words[index].lower(), "") for tree, index in subjects]
    counts = Counter(person if person in ("1", "2") else "3" for person in persons)
    return {person: counts[person] for person in "123"} if any(persons) else {}


def best_heads(measured: Roles) -> tuple[Best, ...]:
    """For each kind, role and label the best head, chosen on one half of the sentences and measured on the other.

    So is the best offset that it is compared with. If a half has no trial, heads are chosen and measured on all
    sentences, and `held_out` is False.
    """
    by_label: dict[tuple[str, str, str], list[tuple[Head, HalvedEvidence]]] = {}
    for head in measured.heads:
        for evidence in measured[head]:
            by_label.setdefault((head.kind, evidence.role, evidence.label), []).append((head, evidence))
    return tuple(_best(rivals) for rivals in by_label.values())


def _best(rivals: list[tuple[Head, HalvedEvidence]]) -> Best:
    halves = rivals[0][1].halves
    apart = halves is not None and not any(np.isnan(half.value) for half in halves)
    if not apart:
        head, evidence = max(rivals, key=lambda rival: rival[1].value)
        return Best(**asdict(evidence.plain()), kind=head.kind, head=str(head), held_out=False)
    head, evidence = max(rivals, key=lambda rival: rival[1].halves[0].value if rival[1].halves else rival[1].value)
    measured = evidence.halves[1]._asdict() if evidence.halves else {}
    on_half = {
        "trials": evidence.odd_trials, "baseline": evidence.odd_baseline, "excluded": evidence.odd_excluded
    }  # fmt: skip
    measured |= {name: value for name, value in on_half.items() if value is not None}
    return Best(**{**asdict(evidence.plain()), **measured}, kind=head.kind, head=str(head), held_out=True)


def rare_head(evidence: Mapping[str, Sequence[Evidence]]) -> str:
    """The head in a record's evidence that attends most to rare tokens, with its interval above chance."""
    rows = [(head, item) for head, items in evidence.items() for item in items if item.role == "rare"]
    if not rows:
        raise UsageError("No sentence has a rare token: there is no head to show.")
    above = [(head, item) for head, item in rows if item.low > item.baseline]
    if not above:
        most = max(item.value - item.baseline for _, item in rows)
        raise UsageError(
            "No head looks at rare tokens significantly more than chance: there is no head to show "
            f"(the highest value is {most:+.1%} from chance)."
        )
    return max(above, key=lambda row: row[1].value)[0]


def _paper_numbers(measured: Roles) -> PaperNumbers:
    """The numbers of section 5 of the paper for this model's encoder (or only stack)."""
    kind = next((head.kind for head in measured.heads if measured[head]), "")
    heads = [head for head in measured.heads if head.kind == kind and measured[head]]
    return PaperNumbers(
        kind=kind,
        num_heads=len(heads),
        by_role=dict(Counter(role for head in heads for role in {item.role for item in measured[head] if item.holds})),
        without_role=sum(not any(item.holds for item in measured[head]) for head in heads),
        positional=_positional(measured, heads),
        rare=_rare(measured, heads),
    )


def _positional(measured: Roles, heads: list[Head]) -> PositionalHeads:
    """Confidence of positional heads and of the others."""
    labels = {
        str(head): next(item.label for item in held(measured[head]) if item.role == "positional")
        for head in heads
        if any(item.holds and item.role == "positional" for item in measured[head])
    }
    confidence = {name: measured.confidence[name].value for name in labels}
    further = [measured.confidence[head].value for head in heads if str(head) not in labels]
    return PositionalHeads(
        labels=labels,
        confidence=confidence,
        above=sum(value > CONFIDENT for value in confidence.values()),
        mean_confidence_of_others=float(np.mean(further)) if further else float("nan"),
    )


def _rare(measured: Roles, heads: list[Head]) -> RareHead | None:
    """The head of the first layer that attends to rare tokens most often, with the rank of its confidence."""
    layer = [head for head in heads if head.layer == heads[0].layer]
    rows = {head: {item.label: item for item in measured[head] if item.role == "rare"} for head in layer}
    if not any(rows.values()):
        return None
    best = max(layer, key=lambda head: rows[head]["two rarest"].value)
    rarest, two_rarest = rows[best]["rarest"], rows[best]["two rarest"]
    order = sorted(layer, key=lambda head: -float(measured.confidence[head].value))
    return RareHead(
        head=str(best),
        rarest=rarest.value,
        two_rarest=two_rarest.value,
        chance_rarest=rarest.baseline,
        chance_two_rarest=two_rarest.baseline,
        queries=rarest.trials,
        confidence=measured.confidence[best].value,
        confidence_rank_in_layer=1 + order.index(best),
        holds=two_rarest.holds,
    )


def _relevance(record: Record[Scoring], measured: Roles) -> dict[str, float]:
    scores = record.parts.scores
    if record.signature.weights and record.signature.weights != measured.signature.weights:
        raise UsageError("The relevance was measured on another model: its weights differ from this one's.")
    return {str(head): scores[str(head)] for head in measured.heads if str(head) in scores and measured[head]}


def with_relevance(measured: Record[RolesFound], record: Record[Scoring]) -> Record[RolesFound]:
    """Roles with the relevance of the same model, as if it had been known when they were measured."""
    parts, scores = measured.parts, record.parts.scores
    relevance = {head: scores[head] for head in parts.confidence if head in scores}
    return replace(
        measured, parts=replace(parts, relevance=relevance, agreement=_agreement(relevance, parts.confidence))
    )


def _agreement(relevance: Mapping[str, float], confidence: Mapping[Any, Any]) -> dict[str, Correlation]:
    """Whether confident heads are relevant heads, over all heads of each kind."""
    kinds: dict[str, list[str]] = {}
    for name in relevance:
        kinds.setdefault(Head.parse(name).kind, []).append(name)
    return {
        kind: spearman(
            [relevance[name] for name in names],
            [confidence[name].value for name in names],
            groups=sites_of(names),
        )
        for kind, names in kinds.items()
    }
