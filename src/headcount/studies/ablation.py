"""Ablation studies (Michel et al. 2019, section 3): one head out, all but one, and the same on two data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.journal import Shelf
from headcount.metrics import Metric
from headcount.progress import Progress, named, silent
from headcount.record import Record, Signature
from headcount.record.results.ablate import Ablation, BestAlone, Effect, Summary, Transfer
from headcount.scores.ablation import effects, identity
from headcount.scores.pieces import shelf
from headcount.scores.sequential import Stopped, until_certain
from headcount.scores.variants import Outcome, Variant, all_but_one, measure, one_out
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import holm, pearson, spearman
from headcount.tasks.overlap import Examples, measured_on
from headcount.tasks.task import Task


def ablate(
    model: nn.Module,
    task: Task,
    *,
    name: str = "",
    other: Task | None = None,
    choose_on: Task | None = None,
    chosen_on: Sequence[Examples] = (),
    alone: bool = True,
    alpha: float = 0.01,
    early: bool = False,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Record[Ablation]:
    """Mask every head alone, and all other heads of its layer; with a second data set, compare the effects.

    Heads whose attention does not run on the data are not in the result: removing them would seem to be harmless.
    other: a second data set. Best heads are chosen on the first and measured on it, and effects are correlated.
    choose_on: other examples to choose the best head of each layer on.
    chosen_on: examples that the heads of a pruned model were chosen on; the record says how many are measured on.
    alone: also mask all other heads of the layer, for every head.
    early: stop measuring a head once it is certain that it matters, by a test and an interval that are valid at any
        stopping time (`scores.sequential`). For accuracy only; the numbers then come from fewer examples.
    folder: for unfinished work, from which the same call resumes.
    """
    if other is not None and (measured_on([task], other).much_seen or measured_on([other], task).much_seen):
        raise UsageError(
            "More than a tenth of the second data set has the texts of the first, or of the first those of the second: "
            "effects on both would agree by definition."
        )
    metric, better = task.metric, task.metric.higher_is_better
    out, lonely = one_out(model), all_but_one(model) if alone else []
    weights = weight_hash(model)

    def both(data: Task, part: str, folder_name: str) -> tuple[float, list[Effect], list[Effect]]:
        if early:
            return _early(model, data, out, lonely, alpha, named(part, progress))
        signature = Signature(name, weights, data.fingerprint, arguments={"metric": metric.name})
        finished = shelf(folder / folder_name if folder else None, model, data, identity(signature, [*out, *lonely]))
        return _effects(model, data, out, lonely, alpha, finished, named(part, progress))

    value, ones, alones = both(task, "masking heads", "first")
    if not any(map(_ran, ones)):
        raise UsageError("No attention of the model runs on these examples: there is no head to mask.")
    choices = [effect.value for effect in alones]
    if choose_on is not None and alone:
        signature = Signature(name, weights, choose_on.fingerprint, arguments={"metric": metric.name})
        finished = shelf(folder / "choice" if folder else None, model, choose_on, identity(signature, lonely))
        outcome = measure(model, choose_on, lonely, finished=finished, progress=named("choosing heads", progress))
        choices = [choose_on.metric.of(statistics) for statistics in outcome.variants]
    transfer, best_elsewhere = None, None
    if other is not None:
        other_value, ones_there, alones_there = both(other, "masking heads, second data", "second")
        # Whether the same heads matter on both data sets (the paper: r = .56 and .68).
        compared = [index for index, pair in enumerate(zip(ones, ones_there, strict=True)) if all(map(_ran, pair))]
        differences = [[side[index].difference for index in compared] for side in (ones, ones_there)]
        layers = [out[index].site for index in compared]
        correlations = pearson(*differences, groups=layers), spearman(*differences, groups=layers)
        transfer = Transfer(other_value, *correlations, _by_head(out, ones_there))
        chosen_there = measured_on([choose_on or task], other).much_seen
        best_elsewhere = _best(model, lonely, choices, alones_there, better) if alone and not chosen_there else None
    parts = Ablation(
        metric=metric.name,
        higher_is_better=better,
        distance=metric.distance,
        value=value,
        alpha=alpha,
        one_out=_by_head(out, ones),
        summary=_summary(list(filter(_ran, ones)), better, alpha),
        all_but_one=_best(model, lonely, choices, alones, better) if alone else None,
        other=transfer,
        all_but_one_chosen_elsewhere=best_elsewhere,
        alone_held_out=alone and choose_on is not None and not measured_on([choose_on], task).much_seen,
        measured_on=measured_on(chosen_on, task) if chosen_on else None,
    )
    arguments = {"metric": metric.name, "alpha": alpha, "early": early, "other": other.fingerprint if other else None}
    arguments |= {"chosen_on": choose_on.fingerprint} if choose_on else {}
    return Record("ablate", Signature(name, weights, task.fingerprint, arguments=arguments), parts)


def _effects(
    model: nn.Module,
    task: Task,
    out: list[Variant],
    lonely: list[Variant],
    alpha: float,
    finished: Shelf | None,
    progress: Progress,
) -> tuple[float, list[Effect], list[Effect]]:
    """The unmasked model's metric, and the effects of both experiments, each corrected for its number of heads."""
    metric = task.metric
    outcome = measure(model, task, [*out, *lonely], finished=finished, progress=progress)
    ones, alones = outcome.variants[: len(out)], outcome.variants[len(out) :]
    one_out = effects(metric, Outcome(outcome.base, ones), alpha=alpha)
    all_but_one = effects(metric, Outcome(outcome.base, alones), alpha=alpha) if len(alones) else []
    return metric.of(outcome.base), one_out, all_but_one


def _early(
    model: nn.Module, task: Task, out: list[Variant], lonely: list[Variant], alpha: float, progress: Progress
) -> tuple[float, list[Effect], list[Effect]]:
    """As `_effects`, but each variant is measured only until it is certain that its heads matter.

    The unmasked model is measured on all examples: its metric is that of the data, wherever the variants stopped.
    """
    metric = task.metric
    stopped_variants = until_certain(model, task, metric, [*out, *lonely], alpha=alpha, progress=progress)
    sides = [
        _stopped_effects(metric, stopped) for stopped in (stopped_variants[: len(out)], stopped_variants[len(out) :])
    ]
    return metric.of(task.quality(model).statistics), sides[0], sides[1]


def _stopped_effects(metric: Metric, stopped: list[Stopped]) -> list[Effect]:
    corrected = holm([variant.p for variant in stopped])
    return [
        Effect(
            value=metric.of(variant.outcome.variants[0]), difference=variant.difference.value,
            low=variant.difference.low, high=variant.difference.high, p=variant.p, corrected=float(p),
            examples=variant.examples,
        )
        for variant, p in zip(stopped, corrected, strict=True)
    ]  # fmt: skip


def _ran(effect: Effect) -> bool:
    """Whether the site of the heads ran on the data."""
    return effect.examples > 0


def _by_head(out: list[Variant], measured: list[Effect]) -> dict[str, Effect]:
    return {str(variant.off[0]): effect for variant, effect in zip(out, measured, strict=True) if _ran(effect)}


def _summary(measured: list[Effect], higher_is_better: bool, alpha: float) -> Summary:
    def better(effect: Effect) -> bool:
        return (effect.difference > 0) == higher_is_better

    raw = [effect for effect in measured if effect.p < alpha]
    corrected = [effect for effect in measured if effect.corrected < alpha]
    return Summary(
        num_heads=sum(map(_ran, measured)),
        significant=len(raw),
        significant_and_better_without=sum(map(better, raw)),
        significant_corrected=len(corrected),
        significant_corrected_and_better_without=sum(map(better, corrected)),
    )


def _best(
    model: nn.Module, lonely: list[Variant], choices: list[float], measured_on: list[Effect], higher_is_better: bool
) -> dict[str, BestAlone]:
    """For each site that ran, the head that is best alone by its metric in `choices`, with its measured effect."""
    sites, table = locate(model), {}
    for name, places in _by_site(lonely).items():
        values = [choices[index] for index in places]
        if np.isnan(values).all() or not _ran(measured_on[places[0]]):  # it did not run on one of the data sets
            continue
        best = places[int(np.argmax(values) if higher_is_better else np.argmin(values))]
        head = next(head for head in sites[name].head_names() if head not in lonely[best].off)
        table[name] = BestAlone(head=str(head), **asdict(measured_on[best]))
    return table


def _by_site(variants: list[Variant]) -> dict[str, list[int]]:
    sites: dict[str, list[int]] = {}
    for index, variant in enumerate(variants):
        sites.setdefault(".".join(map(str, variant.site)), []).append(index)
    return sites
