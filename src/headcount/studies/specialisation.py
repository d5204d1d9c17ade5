"""specialisation: do heads with a role of the paper matter more than others, and do they survive pruning?

The central claim of Voita et al. 2019, over several models: roles and the cost of masking each head alone, the heads
that gates keep, against a random choice of as many heads in each layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount import journal
from headcount.errors import UsageError
from headcount.heads import PAPER_ROLES, Head
from headcount.probes.masks import masked
from headcount.progress import Progress, named, silent
from headcount.pruning.tuning import AFTER_GATES, Tuning
from headcount.record import Record, Signature
from headcount.roles.evidence import Evidence
from headcount.roles.measure import Roles, roles
from headcount.scores.score import score
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import (
    bootstrap_interval,
    chance_of_overlap,
    mean_interval,
    paired_bootstrap,
    permutation_of_groups,
    spearman,
)
from headcount.studies.kept import Looking
from headcount.studies.plan import Data
from headcount.studies.plan import Plan as Sizes
from headcount.studies.tradeoff import tradeoff
from headcount.tasks.task import Quality, Task

RELATIONS = ("nsubj", "obj", "amod", "advmod")  # of the paper's Table 1
NEIGHBOURS = ("-1", "+1")


@dataclass(frozen=True)
class Subject:
    """One model with everything that is measured on it."""

    name: str
    model: nn.Module
    data: Data
    costs: Task  # what one head out is measured on, by its loss
    choose: Looking  # sentences that the best head of each role is chosen on
    measure: Looking  # sentences that it is measured on


@dataclass(frozen=True)
class Plan:
    """How many heads gates keep, and how long they train."""

    keep: int | None = None  # heads of the kind; a third of them if None
    gate_steps: int = 150
    tuning: Tuning = AFTER_GATES
    kind: str = "encoder"


def specialisation(
    subjects: Mapping[str, Callable[[], Subject]],
    plan: Plan,
    *,
    folder: Path,
    data: str = "",
    progress: Progress = silent,
) -> Record:
    """Measure every model and pool them.

    subjects: by name, each built when it is needed; what is finished is read from the folder.
    """
    if not subjects:
        raise UsageError("The study needs at least one model.")
    models: dict[str, Any] = {}
    for number, (name, build) in enumerate(subjects.items()):
        progress("models", number, len(subjects))
        file = folder / f"{number}.json"
        if not file.is_file():
            measured = _measure(build(), plan, folder / str(number), progress)
            journal.write_json(file, measured)
        models[name] = journal.read_json(file)
    progress("models", len(subjects), len(subjects))
    signature = Signature(" ".join(subjects), data=data, arguments={"data": data, **asdict(plan)})
    measured_on = next(iter(models.values())).get("measured_on")
    parts = {"models": models, "measured_on": measured_on, **pooled(list(models.values()))}
    return Record("specialisation", signature, parts)


def pooled(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all models together say of the two claims, and how many of them have which heads."""
    return {
        "roles": list(PAPER_ROLES),
        "survival": _survival(models),
        "cost": _cost(models),
        "shares": _shares(models),
        "counts": _counts(models),
    }


def _measure(subject: Subject, plan: Plan, folder: Path, progress: Progress) -> dict[str, Any]:
    model, measure = subject.model, subject.data.measuring
    heads = [head for head in locate(model).heads if head.kind == plan.kind]
    if not heads:
        raise UsageError(f"{subject.name} has no {plan.kind} heads; it has {', '.join(locate(model).kinds)} heads.")
    keep = plan.keep or max(1, len(heads) // 3)
    chosen = _evidence(model, subject.choose, f"{subject.name}: roles, choosing", progress)
    found = _evidence(model, subject.measure, f"{subject.name}: roles, measuring", progress)
    costs = score("ablation", model, subject.costs)
    whole = measure.quality(model)
    with masked(model, locate(model).mask(off=list(map(str, heads)))):
        without = measure.quality(model)
    sizes = Sizes(
        (keep,), ("l0",), (plan.kind,), gate_steps=plan.gate_steps, tuning=plan.tuning, against="l0"
    )  # fmt: skip
    pruned = tradeoff(
        model, subject.data, sizes, name=subject.name, folder=folder,
        progress=lambda part, done, of: progress(f"{subject.name}: {part}", done, of),
    )  # fmt: skip
    (point,) = pruned.parts["tradeoff"]
    kept = set(point["heads"])
    return {
        "weights": weight_hash(model),
        "measured_on": pruned.parts["measured_on"],
        "metric": whole.metric.name,
        "quality": _interval(whole),
        "without": _lost(whole, without),
        "pruned": {"keep": keep, **{name: point[name] for name in ("after", "settled") if name in point},
                   "lost": pruned.parts["compared"][0]["lost"]},
        "best": _best(chosen, found, heads),
        "heads": {
            str(head): {
                "roles": sorted({one.role for one in found[head] if _has_role(one)}),
                "labels": [f"{one.role} {one.label}" for one in found[head] if _has_role(one)],
                "confidence": found.confidence[head].value,
                "at_neighbour": max(
                    (one.value for one in found[head] if one.role == "positional" and one.label in NEIGHBOURS),
                    default=0.0,
                ),
                "cost": float(costs[str(head)]),
                "kept": str(head) in kept,
            }
            for head in heads
        },
    }  # fmt: skip


def _evidence(model: nn.Module, looking: Looking, part: str, progress: Progress) -> Roles:
    return roles(
        model, looking.sentences, tokenizer=looking.tokenizer, frequencies=looking.frequencies,
        progress=named(part, progress),
    )  # fmt: skip


def _has_role(one: Evidence) -> bool:
    """A role of the paper, cleared by the lower end of its interval."""
    return one.role in PAPER_ROLES and bool(one.holds)


def _best(chosen: Roles, found: Roles, heads: Sequence[Head]) -> list[dict[str, Any]]:
    """The best head of every label, chosen on one set of sentences and measured on the other."""
    labels = dict.fromkeys((one.role, one.label) for head in heads for one in chosen[head] if one.role in PAPER_ROLES)
    rows = []
    for role, label in labels:
        values = {head: one.value for head in heads for one in chosen[head] if (one.role, one.label) == (role, label)}
        best = max(values, key=lambda head: values[head])
        (one,) = [one for one in found[best] if (one.role, one.label) == (role, label)]
        confidence = found.confidence[best].value
        rows.append({"head": str(best), "confidence": confidence, "has_role": _has_role(one), **one.to_plain()})
    return rows


def _interval(quality: Quality) -> dict[str, float]:
    return bootstrap_interval(quality.statistics, quality.metric.of_sums)._asdict()


def _lost(whole: Quality, other: Quality) -> dict[str, float]:
    (compared,) = paired_bootstrap(whole.statistics, other.statistics[None], whole.metric.of_sums, resamples=1000)
    return {"value": other.value, **compared._asdict()}


def _survival(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Heads with a role that gates keep, against a random choice with as many heads in each layer of each model."""
    by_role = {role: _overlap(models, (role,)) for role in PAPER_ROLES}
    return {**_overlap(models, PAPER_ROLES), "by_role": by_role}


def _overlap(models: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    layers: dict[tuple[int, int], list[int]] = {}
    both = marked = 0
    for number, model in enumerate(models):
        for name, head in model["heads"].items():
            has_role = bool(set(head["roles"]) & set(names))
            row = layers.setdefault((number, Head.parse(name).layer), [0, 0, 0])
            row[0] += 1
            row[1] += has_role
            row[2] += head["kept"]
            marked += has_role
            both += has_role and head["kept"]
    chance = chance_of_overlap(list(layers.values()))
    return {
        "heads": marked,
        "kept": both,
        "expected": float(chance @ np.arange(len(chance))),
        "p": float(min(1.0, chance[both:].sum())),
    }


def _cost(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What masking a head alone costs, with a role of the paper and without."""
    rows = [
        (number, bool(head["roles"]), head["cost"])
        for number, model in enumerate(models)
        for head in model["heads"].values()
    ]
    means = {
        mark: [
            np.mean([cost for number, has_role, cost in rows if number == model and has_role == mark] or [np.nan])
            for model in range(len(models))
        ]
        for mark in (True, False)
    }
    differences = np.array(means[True]) - np.array(means[False])
    known = differences[~np.isnan(differences)]
    return {
        "with_role": _mean(means[True]),
        "without_role": _mean(means[False]),
        "difference": mean_interval(known)._asdict() if len(known) else None,
        "models": len(known),
        "p": permutation_of_groups(
            [cost for *_, cost in rows], [has_role for _, has_role, _ in rows], [number for number, *_ in rows]
        ),
    }


def _mean(values: Sequence[float]) -> float | None:
    known = [float(value) for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else None


def _shares(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The graded statement: how far a head looks at a neighbour against what masking it costs, over the models."""
    correlations = [
        spearman([head["at_neighbour"] for head in heads], [head["cost"] for head in heads]).r
        for heads in (list(model["heads"].values()) for model in models)
    ]
    values = [r for r in correlations if not np.isnan(r)]
    return {"spearman": values, **(mean_interval(values)._asdict() if values else {})}


def _counts(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """In how many models there is a head for each label, and for how many relations."""
    labels: dict[str, int] = {}
    relations = []
    for model in models:
        names = {f"{row['role']} {row['label']}" for row in model["best"] if row["has_role"]}
        related = {label.split()[1] for label in names if label.startswith("syntactic ")}
        for name in names | {f"syntactic {relation}" for relation in related}:
            labels[name] = labels.get(name, 0) + 1
        relations.append(sorted(related & set(RELATIONS)))
    return {"models": len(models), "labels": dict(sorted(labels.items())), "relations": relations}
