"""specialisation: do heads with a role of the paper matter more than others, and do they survive pruning?

The central claim of Voita et al. 2019, over several models: roles and the cost of masking each head alone, the heads
that gates keep, against a random choice of as many heads in each layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from torch import nn

from headcount import journal
from headcount.errors import UsageError
from headcount.head_roles.measure import Roles, roles
from headcount.heads import PAPER_ROLES, Head
from headcount.probes.masks import masked
from headcount.progress import Progress, named, silent
from headcount.pruning.tuning import AFTER_GATES, Tuning
from headcount.record import Record, Signature
from headcount.record.codec import decode, encode
from headcount.record.results.roles import Evidence
from headcount.record.results.specialisation import (
    BestOfRole,
    CostOfMasking,
    HeadRow,
    ModelRow,
    SmallerModel,
    Specialisation,
    Survival,
)
from headcount.record.training import training_of
from headcount.scores.variants import Variant, measure
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import (
    Comparison,
    Interval,
    RatioSums,
    chance_of_overlap,
    mean_interval,
    over_models,
    permutation_of_groups,
    spearman,
)
from headcount.studies.kept import Looking
from headcount.studies.plan import Data
from headcount.studies.plan import Plan as Sizes
from headcount.studies.tradeoff import tradeoff
from headcount.tasks.inputs import claim_inputs
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task

RELATIONS = ("nsubj", "obj", "amod", "advmod")  # of the paper's Table 1
NEIGHBOURS = ("-1", "+1")


@dataclass(frozen=True)
class ModelWithData:
    """One model and its data."""

    name: str
    model: nn.Module
    data: Data
    costs: Task  # data for masking one head at a time, by the loss
    choose: Looking  # sentences that the best head of each role is chosen on
    measure: Looking  # sentences that it is measured on


@dataclass(frozen=True)
class SpecialisationPlan:
    """How many heads gates keep, and how long they train."""

    keep: int | None = None  # heads of the kind; a third of them if None
    gate_steps: int = 150
    tuning: Tuning = AFTER_GATES
    kind: str = "encoder"


def specialisation(
    subjects: Mapping[str, Callable[[], ModelWithData]],
    plan: SpecialisationPlan,
    *,
    folder: Path,
    data: str = "",
    progress: Progress = silent,
) -> Record[Specialisation]:
    """Measure every model and pool them.

    subjects: functions by name, each called when needed; finished models are read from the folder. Raises if two models
        have the same weights, or if the folder was started with other models, data or settings.
    """
    if not subjects:
        raise UsageError("The study needs at least one model.")
    if len(subjects) > 1:
        _check_different(subjects, progress)
    models: dict[str, ModelRow] = {}
    for number, (name, build) in enumerate(subjects.items()):
        progress("models", number, len(subjects))
        file, subject = folder / f"{number}.json", build()
        journal.claim(folder / str(number), "subject.json", _identity(subject, plan))
        measuring = subject.data.measuring
        journal.claim(folder / str(number), "measured.json", {"metric": measuring.metric.name, **measuring.identity})
        claim_inputs(folder / str(number), subject.model, subject.data.training)  # as `tradeoff` does there
        if not file.is_file():
            journal.write_json(file, encode(_measure(subject, plan, folder / str(number), progress)))
        models[name] = decode(ModelRow, journal.read_json(file), source=str(file))
    progress("models", len(subjects), len(subjects))
    signature = Signature(" ".join(subjects), data=data, arguments={"data": data, **asdict(plan)})
    return Record("specialisation", signature, pooled(models))


def _check_different(subjects: Mapping[str, Callable[[], ModelWithData]], progress: Progress) -> None:
    """Raise if two models are the same, or of one training: they would count twice in every interval and p-value."""
    runs: dict[str, str] = {}  # training -> name
    for name in subjects:
        other = runs.setdefault(training_of(name)[0], name)
        if other != name:
            raise UsageError(
                f"{other} and {name} are of one training. Give one of its models, and others of other seeds."
            )
    names: dict[str, str] = {}  # weights -> name
    for number, (name, build) in enumerate(subjects.items(), start=1):
        same = names.setdefault(weight_hash(build().model), name)
        if same != name:
            raise UsageError(f"{same} and {name} have the same weights. Give each model once.")
        progress("comparing weights", number, len(subjects))


def _identity(subject: ModelWithData, plan: SpecialisationPlan) -> dict[str, object]:
    """The settings that decide the results of a model."""
    data = subject.data
    return {
        "model": subject.name,
        "weights": weight_hash(subject.model),
        "texts": [task.fingerprint for task in (data.training, data.choosing, data.measuring, subject.costs)],
        "sentences": [subject.choose.fingerprint, subject.measure.fingerprint],
        "plan": asdict(plan),
    }


def pooled(models: Mapping[str, ModelRow]) -> Specialisation:
    """Statistics of the two claims over all models, and how many models have which heads."""
    rows = list(models.values())
    correlations = _neighbour_correlations(rows)
    labels, relations = _counts(rows)
    return Specialisation(
        models=models,
        measured_on=max((row.measured_on for row in rows), key=lambda measured: measured.doubt),
        survival=_survival(rows, PAPER_ROLES),
        survival_by_role={role: _survival(rows, (role,)) for role in PAPER_ROLES},
        masking=_masking(rows),
        neighbour_correlations=correlations,
        mean_neighbour_correlation=mean_interval(correlations) if correlations else None,
        models_with_label=labels,
        relations_of_models=relations,
    )


def _measure(subject: ModelWithData, plan: SpecialisationPlan, folder: Path, progress: Progress) -> ModelRow:
    model, measure = subject.model, subject.data.measuring
    heads = list(locate(model).of_kinds((plan.kind,)))
    keep = plan.keep or max(1, len(heads) // 3)
    choosing_roles = _evidence(model, subject.choose, plan.kind, f"{subject.name}: roles, choosing", progress)
    measured_roles = _evidence(model, subject.measure, plan.kind, f"{subject.name}: roles, measuring", progress)
    costs = Costs.of(model, subject.costs, heads)
    quality = measure.quality(model)
    with masked(model, locate(model).mask(off=list(map(str, heads)))):
        without = measure.quality(model)
    sizes = Sizes((keep,), ("l0",), (plan.kind,), gate_steps=plan.gate_steps, tuning=plan.tuning, against="l0")
    pruned = tradeoff(
        model, subject.data, sizes, name=subject.name, folder=folder,
        progress=lambda part, step, of: progress(f"{subject.name}: {part}", step, of),
    )  # fmt: skip
    (point,) = pruned.parts.points
    lost = pruned.parts.compared[0].lost
    p = float("nan") if lost.p is None else lost.p  # with one seed
    survivors = set(point.heads)
    by_head = {
        str(head): _row(head, measured_roles, cost, str(head) in survivors)
        for head, cost in zip(heads, costs.of_heads(), strict=True)
    }
    return ModelRow(
        weights=weight_hash(model),
        measured_on=pruned.parts.measured_on,
        metric=quality.metric.name,
        unpruned=quality.interval(),
        without=SmallerModel(0, without.value, _lost(quality, without)),
        pruned=SmallerModel(keep, point.after.value, Comparison(lost.difference, lost.low, lost.high, p)),
        best_of_roles=_best(choosing_roles, measured_roles, heads),
        by_head=by_head,
        more_with_role=costs.difference([bool(row.role_names) for row in by_head.values()]),
    )


@dataclass(frozen=True)
class Costs:
    """What masking each head alone adds to the loss of each example, and how many tokens this has. H heads, N examples.

    The mean cost of several heads is a ratio of sums over examples, as the cost of one head is.
    """

    added_HN: np.ndarray
    tokens_N: np.ndarray

    @classmethod
    def of(cls, model: nn.Module, task: Task, heads: Sequence[Head]) -> Costs:
        outcome = measure(model, task, [Variant(head.site, (head,)) for head in heads])
        return cls(outcome.variants[..., 0] - outcome.base[:, 0], outcome.base[:, 1])

    def of_heads(self) -> list[float]:
        return [float(cost) for cost in self.added_HN.sum(1) / self.tokens_N.sum()]

    def difference(self, with_role: Sequence[bool]) -> Interval | None:
        """The mean cost of heads with a role less that of others, with its interval over examples."""
        marked_H = np.array(with_role)
        if marked_H.all() or not marked_H.any():
            return None
        more_N = self.added_HN[marked_H].mean(0) - self.added_HN[~marked_H].mean(0)
        sums = RatioSums.of(more_N, self.tokens_N)
        return Interval(float(sums.value), *map(float, sums.ends(sums.count)))


def _row(head: Head, measured_roles: Roles, loss_added: float, survives: bool) -> HeadRow:
    held = [evidence for evidence in measured_roles[head] if _has_role(evidence)]
    at_neighbour = (
        item.value for item in measured_roles[head] if item.role == "positional" and item.label in NEIGHBOURS
    )
    return HeadRow(
        role_names=tuple(sorted({evidence.role for evidence in held})),
        labels=tuple(f"{evidence.role} {evidence.label}" for evidence in held),
        head_confidence=measured_roles.confidence[head].value,
        at_neighbour=max(at_neighbour, default=0.0),
        loss_added=loss_added,
        survives=survives,
    )


def _evidence(model: nn.Module, looking: Looking, kind: str, part: str, progress: Progress) -> Roles:
    """Roles of the heads of a kind. Only those of an encoder do not read translations."""
    targets = None if kind == "encoder" else looking.sentences.targets
    measured_roles = roles(
        model, looking.sentences, tokenizer=looking.tokenizer, targets=targets, frequencies=looking.frequencies,
        progress=named(part, progress),
    )  # fmt: skip
    if not any(measured_roles[head] for head in locate(model).of_kinds((kind,))):
        raise UsageError(
            f"Roles of {kind} heads cannot be measured on these sentences, which have no translations. Give parallel "
            "text as --data, without --trees, or study encoder heads (--kind encoder)."
        )
    return measured_roles


def _has_role(evidence: Evidence) -> bool:
    """Whether a head has a role of the paper, by the lower end of its interval."""
    return evidence.role in PAPER_ROLES and bool(evidence.holds)


def _best(choosing_roles: Roles, measured_roles: Roles, heads: Sequence[Head]) -> tuple[BestOfRole, ...]:
    """The best head of every label, chosen on one set of sentences and measured on the other, if that has the label."""
    labels = dict.fromkeys(
        (item.role, item.label) for head in heads for item in choosing_roles[head] if item.role in PAPER_ROLES
    )
    rows = []
    for label in labels:
        values = {
            head: item.value for head in heads for item in choosing_roles[head] if (item.role, item.label) == label
        }
        best = max(values, key=lambda head: values[head])
        rows += [
            BestOfRole(
                head=str(best),
                head_confidence=measured_roles.confidence[best].value,
                has_role=_has_role(evidence),
                **asdict(evidence.plain()),
            )
            for evidence in measured_roles[best]
            if (evidence.role, evidence.label) == label
        ]
    return tuple(rows)


def _lost(quality: Quality, other: Quality) -> Comparison:
    (compared,) = quality.metric.compare(quality.statistics, other.statistics[None], resamples=1000)
    return compared


def _survival(models: Sequence[ModelRow], roles: Sequence[str]) -> Survival:
    """Heads with a role that gates keep, compared with a random choice of as many heads in each layer."""
    layers: dict[tuple[int, int], list[int]] = {}
    both = marked = 0
    for number, model in enumerate(models):
        for name, head in model.by_head.items():
            has_role = bool(set(head.role_names) & set(roles))
            row = layers.setdefault((number, Head.parse(name).layer), [0, 0, 0])
            row[0] += 1
            row[1] += has_role
            row[2] += head.survives
            marked += has_role
            both += has_role and head.survives
    chance = chance_of_overlap(list(layers.values()))
    expected = float(chance @ np.arange(len(chance)))
    return Survival(marked, both, expected, p=float(min(1.0, chance[both:].sum())))


def _masking(models: Sequence[ModelRow]) -> CostOfMasking:
    """Increase of the loss when a head is masked, for heads with and without a role of the paper.

    p compares heads of the same layer of a model: layers differ in their costs and in how many of their heads have a
    role. With both 40% the layer's and roles dealt over whole models, p was below .05 in 7 to 13% of cases.
    """
    rows = [
        (number, bool(head.role_names), head.loss_added)
        for number, model in enumerate(models)
        for head in model.by_head.values()
    ]
    layers = [f"{number} {Head.parse(name).site}" for number, model in enumerate(models) for name in model.by_head]
    means = {
        mark: [
            np.mean([cost for number, has_role, cost in rows if number == model and has_role == mark] or [np.nan])
            for model in range(len(models))
        ]
        for mark in (True, False)
    }
    with_role, without_role = (np.array(means[mark]) for mark in (True, False))
    more = with_role - without_role
    both = ~np.isnan(more)  # models without roles have no part in either mean
    return CostOfMasking(
        mean_with_role=_mean(with_role[both]),
        mean_without_role=_mean(without_role[both]),
        difference=_difference([model for model, has_both in zip(models, both, strict=True) if has_both], more[both]),
        num_models=int(both.sum()),
        p=permutation_of_groups([cost for *_, cost in rows], [has_role for _, has_role, _ in rows], layers),
    )


def _difference(models: Sequence[ModelRow], more: np.ndarray) -> Interval | None:
    """How much more heads with a role cost; over models alone if records of an earlier version are among them."""
    if not models:
        return None
    over_examples = [model.more_with_role for model in models if model.more_with_role]
    return over_models(over_examples) if len(over_examples) == len(models) else mean_interval(more)


def _mean(values: np.ndarray) -> float:
    """NaN if there are none."""
    return float(values.mean()) if len(values) else float("nan")


def _neighbour_correlations(models: Sequence[ModelRow]) -> tuple[float, ...]:
    """Correlation of attention to a neighbour with the cost of masking, for each model."""
    correlations = [
        spearman([head.at_neighbour for head in heads], [head.loss_added for head in heads]).r
        for heads in (list(model.by_head.values()) for model in models)
    ]
    return tuple(r for r in correlations if not np.isnan(r))


def _counts(models: Sequence[ModelRow]) -> tuple[dict[str, int], tuple[tuple[str, ...], ...]]:
    """Number of models with a head for each label, and the relations of each model."""
    labels: dict[str, int] = {}
    relations = []
    for model in models:
        names = {f"{row.role} {row.label}" for row in model.best_of_roles if row.has_role}
        related = {label.split()[1] for label in names if label.startswith("syntactic ")}
        for name in names | {f"syntactic {relation}" for relation in related}:
            labels[name] = labels.get(name, 0) + 1
        relations.append(tuple(sorted(related & set(RELATIONS))))
    return dict(sorted(labels.items())), tuple(relations)
