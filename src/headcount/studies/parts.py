"""The parts of whole studies: each experiment of a paper on a subject, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.errors import HeadcountError, UsageError
from headcount.progress import named
from headcount.record import Record
from headcount.studies.subject import StudySubject

Part = Callable[[StudySubject], Record]


def _relevance(subject: StudySubject) -> Record:
    from headcount.studies.scoring import scoring

    settings = subject.settings
    limit = min(settings.followed, settings.source.limit or settings.followed)
    task = subject.task(subject.workloads[0].with_limit(limit))
    return scoring(subject.model, task, method="relevance", name=settings.model, progress=subject.progress)


def _roles(subject: StudySubject) -> Record:
    """Roles of heads; if the sentences have a loss, also the loss with each head replaced by its role."""
    from headcount.studies.playing import first_of, task_of
    from headcount.studies.roles import look

    settings, relevance = subject.settings, subject.finished_parts.get("relevance")
    try:
        sentences = first_of(subject.sentences, settings.source.limit)  # as many as the other parts use
        play_on = task_of(subject.model, sentences, subject.tokenizer)
    except UsageError:
        play_on = None
    return look(
        subject.model, subject.sentences, subject.tokenizer, name=settings.model, play_on=play_on,
        data=replace(settings.source, data=settings.trees or settings.source.data).label,
        frequencies=subject.frequencies, relevance=relevance, progress=named("looking at roles", subject.progress),
    )  # fmt: skip


def _tradeoff(subject: StudySubject) -> Record:
    """Heads of some kinds, the encoder's first of all (Voita et al. 2019, section 6.2)."""
    settings = subject.settings
    kinds = settings.kinds if set(settings.kinds) <= set(subject.sites.kinds) else subject.sites.kinds
    heads = sum(head.kind in kinds for head in subject.sites.heads)
    keep = settings.keep or _parts_of(heads, (2, 3, 8))
    return _trade_off(subject, "tradeoff", keep=keep, ways=settings.ways, kinds=kinds)


def _all_kinds(subject: StudySubject) -> Record:
    """Heads of all kinds, from the trained model and from scratch (Voita et al. 2019, section 6.3)."""
    settings, sites = subject.settings, subject.sites
    if not settings.all_kinds_ways:
        raise UsageError("Disabled in the settings: all_kinds_ways is empty.")
    if len(sites.kinds) < 2:
        raise UsageError(f"The model has only {sites.kinds[0]} heads: the part tradeoff already covers all of them.")
    keep = settings.all_kinds_keep or _parts_of(len(sites.heads), (2, 3))
    return _trade_off(subject, "all-kinds", keep=keep, ways=settings.all_kinds_ways, against=settings.all_kinds_ways[0])


def _parts_of(heads: int, parts: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(max(1, heads // part) for part in parts))


def _trade_off(subject: StudySubject, part: str, **plan: Any) -> Record:
    from headcount.pruning.tuning import Tuning
    from headcount.studies.tradeoff import Data, Plan, tradeoff

    settings = subject.settings
    looking, unlooked = _looking(subject)
    return tradeoff(
        subject.model, Data(subject.training, subject.choosing, subject.measuring),
        Plan(
            seeds=settings.seeds, gate_steps=settings.gate_steps, tuning=Tuning(steps=settings.tune_steps),
            scratch_steps=settings.scratch_steps, **plan,
        ),
        name=settings.model, revision=subject.loading.revision, looking=looking, unlooked=unlooked,
        folder=subject.folder / part,
        progress=lambda what, step, of: subject.progress(f"{part}: {what}", step, of),
    )  # fmt: skip


def _looking(subject: StudySubject) -> tuple[Any, str]:
    """Sentences to measure roles of the remaining heads on, or the reason why roles cannot be measured."""
    from headcount.studies.kept import Looking

    if "roles" in subject.missing:
        return None, subject.missing["roles"]
    try:
        return Looking(subject.sentences, subject.tokenizer, subject.frequencies), ""
    except HeadcountError as error:
        return None, str(error)


def _examples(subject: StudySubject) -> Record:
    from headcount.studies.examples import examples

    settings, sentences = subject.settings, subject.sentences
    return examples(
        subject.model, subject.tokenizer, sentences, targets=sentences.targets, name=settings.model,
        data=settings.trees or settings.source.data, progress=subject.progress,
    )  # fmt: skip


def _attention(subject: StudySubject) -> Record:
    """The head that attends most to rare tokens, on a sentence of medium length (Voita et al. 2019, Figure 5)."""
    from headcount.studies.attention import attention_map
    from headcount.studies.playing import texts_of
    from headcount.studies.roles import rare_head

    roles = subject.finished_parts.get("roles")
    if roles is None:
        raise UsageError("The head to show is chosen by its role: the part roles is missing.")
    head = rare_head(roles.parts.evidence)
    text = min(texts_of(subject.sentences), key=lambda text: abs(len(text.split()) - 12))
    return attention_map(subject.model, subject.tokenizer, text, head=head, name=subject.settings.model)


def _ablation(subject: StudySubject) -> Record:
    from headcount.checkpoints.chosen_on import read_chosen_on
    from headcount.studies.ablation import ablate

    model, name = subject.model, subject.settings.model
    return ablate(
        model, subject.measuring, name=name, other=subject.other, choose_on=subject.choosing,
        chosen_on=read_chosen_on(name, subject.loading.revision), progress=subject.progress,
    )  # fmt: skip


def _replacement(subject: StudySubject) -> Record:
    """Three replacements of every head; measured by the loss if the model generates text."""
    from headcount.studies.replacement import replacements

    choosing, measuring = (
        subject.task(replace(work, metric="loss") if work.kind.writes else work) for work in subject.workloads
    )
    return replacements(
        subject.model, measuring, calibration=choosing, name=subject.settings.model, progress=subject.progress
    )


def _gradient(subject: StudySubject) -> Record:
    from headcount.studies.scoring import scoring

    name = subject.settings.model
    return scoring(subject.model, subject.choosing, method="gradient", name=name, progress=subject.progress)


def _curves(subject: StudySubject) -> Record:
    from headcount.studies.curves import CurvePlan, pruning_curves

    settings = subject.settings
    plan = CurvePlan(orders=settings.orders, random=settings.random, step=settings.step)
    return pruning_curves(
        subject.model, subject.choosing, measure_on=subject.measuring, plan=plan, name=settings.model,
        revision=subject.loading.revision, progress=subject.progress,
    )  # fmt: skip


def _dynamics(subject: StudySubject) -> Record:
    from headcount.studies.dynamics import dynamics, epochs_of

    settings = subject.settings
    checkpoints = epochs_of(Path(settings.model), settings.epochs or None)
    return dynamics(
        checkpoints, lambda folder: subject.loading.load(str(folder), task=settings.task), subject.choosing,
        measure_on=subject.measuring, step=settings.step, name=settings.model, progress=subject.progress,
    )  # fmt: skip


def _speed(subject: StudySubject) -> Record:
    """Half of the heads removed, those with the lowest gradient scores (Michel et al. 2019, Table 4)."""
    from headcount.scores.score import score
    from headcount.selection.budget import Budget
    from headcount.selection.select import select
    from headcount.studies.speed import Bench, speed
    from headcount.surgery.remove import remove

    settings = subject.settings
    mask = select(score("gradient", subject.model, subject.choosing), Budget(share=0.5))
    models = {settings.model: subject.model, f"{settings.model}, half of its heads": remove(subject.model, mask)}
    return speed(
        models, bench=Bench(settings.batches, settings.lengths, repeats=settings.repeats), progress=subject.progress
    )


PARTS: dict[str, Part] = {
    "gradient": _gradient,
    "ablation": _ablation,
    "replacement": _replacement,
    "curves": _curves,
    "dynamics": _dynamics,
    "speed": _speed,
    "relevance": _relevance,
    "roles": _roles,
    "attention": _attention,
    "examples": _examples,
    "tradeoff": _tradeoff,
    "all-kinds": _all_kinds,
}
# Texts that a part reads besides those that heads are chosen and measured on, by their names in a StudySubject.
READS: dict[str, tuple[str, ...]] = {
    "roles": ("sentences", "frequencies"),
    "attention": ("sentences",),
    "examples": ("sentences",),
    "tradeoff": ("training", "sentences", "frequencies"),
    "all-kinds": ("training", "sentences", "frequencies"),
}
