"""Ablation studies (Michel et al. 2019, section 3): one head out, all but one, and the same on two data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from torch import nn

from headcount.record import Record, Signature
from headcount.scores.ablation import Effect, effects, metric_of
from headcount.scores.variants import Variant, all_but_one, measure, one_out
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import pearson, spearman
from headcount.tasks.task import Task

Progress = Callable[[str, int, int], None]  # part, done, of


def ablate(
    model: nn.Module,
    task: Task,
    *,
    name: str = "",
    other: Task | None = None,
    alone: bool = True,
    alpha: float = 0.01,
    progress: Progress = lambda *_: None,
) -> Record:
    """Every head off alone; every head left alone in its layer; and, with another data set, whether they agree.

    other: a second data set: best heads are chosen on the first and measured on it, and effects are correlated.
    alone: also leave every head alone in its layer.
    """
    metric = metric_of(task)
    out, lonely = one_out(model), all_but_one(model) if alone else []
    found = _effects(model, task, [*out, *lonely], alpha, progress, "masking heads")
    parts: dict[str, Any] = {
        "metric": metric.name,
        "higher_is_better": metric.higher_is_better,
        "value": found.base,
        "alpha": alpha,
        "one_out": {str(v.off[0]): asdict(effect) for v, effect in zip(out, found.first(len(out)), strict=True)},
        "summary": _summary(found.first(len(out)), metric.higher_is_better, alpha),
    }
    if alone:
        kept = _kept(model, lonely)
        parts["all_but_one"] = _best(kept, lonely, found.rest(len(out)), metric.higher_is_better)
    if other is not None:
        again = _effects(model, other, [*out, *lonely], alpha, progress, "masking heads, second data")
        parts["other"] = _agreement(found.first(len(out)), again.first(len(out)), again.base)
        parts["other"]["one_out"] = {
            str(v.off[0]): asdict(effect) for v, effect in zip(out, again.first(len(out)), strict=True)
        }
        if alone:
            parts["all_but_one_chosen_elsewhere"] = _chosen_elsewhere(
                kept, lonely, found.rest(len(out)), again.rest(len(out)), metric.higher_is_better
            )
    arguments = {"metric": metric.name, "alpha": alpha, "other": other.fingerprint if other else None}
    return Record("ablate", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


class _Found:
    """Effects of the variants in order, with the metric of the unmasked model."""

    def __init__(self, base: float, effects_V: list[Effect]) -> None:
        self.base, self._effects = base, effects_V

    def first(self, count: int) -> list[Effect]:
        return self._effects[:count]

    def rest(self, count: int) -> list[Effect]:
        return self._effects[count:]


def _effects(
    model: nn.Module, task: Task, variants: list[Variant], alpha: float, progress: Progress, part: str
) -> _Found:
    """Each experiment is corrected for its own number of heads."""
    metric, heads = metric_of(task), len(one_out(model))
    measured = measure(model, task, variants, progress=lambda done, of: progress(part, done, of))
    both = [
        type(measured)(measured.base, rows)
        for rows in (measured.variants[:heads], measured.variants[heads:])
        if len(rows)
    ]
    return _Found(metric.of(measured.base), [effect for some in both for effect in effects(metric, some, alpha=alpha)])


def _summary(found: list[Effect], higher_is_better: bool, alpha: float) -> dict[str, int]:
    def better(effect: Effect) -> bool:
        return (effect.difference > 0) == higher_is_better

    raw = [effect for effect in found if effect.p < alpha]
    corrected = [effect for effect in found if effect.corrected < alpha]
    return {
        "heads": len(found),
        "significant": len(raw),
        "significant_and_better_without": sum(map(better, raw)),
        "significant_corrected": len(corrected),
        "significant_corrected_and_better_without": sum(map(better, corrected)),
    }


def _kept(model: nn.Module, lonely: list[Variant]) -> list[str]:
    """The head that each of these variants keeps."""
    names = {site.key: site.head_names() for site in locate(model)}
    return [str(next(head for head in names[v.site] if head not in v.off)) for v in lonely]


def _best(
    kept: list[str], lonely: list[Variant], found: list[Effect], higher_is_better: bool
) -> dict[str, dict[str, Any]]:
    """For each site the head that does best alone, chosen and measured on the same data."""
    table = {}
    for site, places in _by_site(lonely).items():
        best = _argbest([found[place].value for place in places], higher_is_better)
        table[site] = {"head": kept[places[best]], **asdict(found[places[best]])}
    return table


def _chosen_elsewhere(
    kept: list[str], lonely: list[Variant], found: list[Effect], again: list[Effect], higher_is_better: bool
) -> dict[str, dict[str, Any]]:
    """For each site the head that does best alone on the first data, measured on the second (the paper's appendix)."""
    table = {}
    for site, places in _by_site(lonely).items():
        best = _argbest([found[place].value for place in places], higher_is_better)
        table[site] = {"head": kept[places[best]], **asdict(again[places[best]])}
    return table


def _by_site(variants: list[Variant]) -> dict[str, list[int]]:
    sites: dict[str, list[int]] = {}
    for place, variant in enumerate(variants):
        sites.setdefault(".".join(map(str, variant.site)), []).append(place)
    return sites


def _argbest(values: list[float], higher_is_better: bool) -> int:
    return int(np.argmax(values) if higher_is_better else np.argmin(values))


def _agreement(found: list[Effect], again: list[Effect], value: float) -> dict[str, Any]:
    """Whether the same heads matter on both data sets (the paper: r = .56 and .68)."""
    pair = [effect.difference for effect in found], [effect.difference for effect in again]
    return {"value": value, "pearson": _plain(pearson(*pair)), "spearman": _plain(spearman(*pair))}


def _plain(correlation: Any) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in correlation._asdict().items()}
