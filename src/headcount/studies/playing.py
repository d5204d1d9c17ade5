"""playing: what is lost when a head is replaced by its role, beside what is lost without the head.

The head's share that its role gives is 1 - (loss with the role - loss) / (loss without the head - loss): 1 where the
role is all that the head does, 0 where the head might as well be off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from headcount.corpora.frequencies import Frequencies
from headcount.corpora.sentences import Sentences
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.hooks import original_module
from headcount.metrics import Metric
from headcount.probes.masks import masked
from headcount.progress import Progress, silent
from headcount.roles.evidence import Evidence, held
from headcount.roles.measure import Roles, counted_in
from headcount.roles.playing import played
from headcount.roles.role import Playable
from headcount.roles.role import roles as members
from headcount.sites.locate import locate
from headcount.statistics import Comparison, bootstrap_sums, paired_bootstrap
from headcount.tasks.task import Task, task

_RESAMPLES = 2000


def task_of(model: nn.Module, sentences: Sentences, tokenizer: Any) -> Task:
    """The loss that a model has on sentences: of their translations, or of their next tokens."""
    if sentences.targets is not None:
        texts = [item.text if isinstance(item, Tree) else item for item in sentences]
        return task("translation", source=texts, target=list(sentences.targets), tokenizer=tokenizer, metric="loss")
    if locate(model).kinds == ("decoder",):
        texts = [item.text if isinstance(item, Tree) else item for item in sentences]
        return task("language-modelling", texts=texts, tokenizer=tokenizer, metric="loss")
    raise UsageError(
        f"To play roles a loss is needed: {type(original_module(model)).__name__} has none on sentences without "
        "translations. Use a translation model with parallel text, or a language model."
    )


def play(
    model: nn.Module,
    task: Task,
    found: Roles,
    sentences: Sentences,
    tokenizer: Any,
    *,
    frequencies: Frequencies | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """For every head with a role that can be played, its clearest one: the task's metric with the head replaced by it.

    Each head: role, label; `off`, `played` and `alone`, changes of the metric with intervals: without the head; with
    the role, and the head's own attention where the role says nothing; with the role and nothing elsewhere. `kept`: of
    what the head is worth, the share that the role alone gives; None where the head is not worth anything for certain.
    """
    parts = {head: evidence for head in found.heads if (evidence := _clearest(found[head])) is not None}
    base = task.quality(model)
    if frequencies is None and any(evidence.role == "rare" for evidence in parts.values()):
        frequencies = counted_in(sentences, tokenizer)  # as the roles were told
    options: dict[str, Any] = {"tokenizer": tokenizer, "frequencies": frequencies, **(reading or {})}
    results: dict[str, dict[str, Any]] = {}
    for done, (head, evidence) in enumerate(parts.items(), start=1):
        part = {head: f"{evidence.role} {evidence.label}"}
        known = {**options, "trees": list(sentences) if evidence.role == "syntactic" else None}
        with masked(model, locate(model).mask(off=head)):
            off = task.quality(model).statistics
        with played(model, part, elsewhere="own", **known):
            own = task.quality(model).statistics
        with played(model, part, elsewhere="zero", **known):
            alone = task.quality(model).statistics
        worth = comparison(base.metric, base.statistics, off, own, alone)
        results[str(head)] = {"role": evidence.role, "label": evidence.label, **worth}
        progress("heads played by their roles", done, len(parts))
    return {"metric": base.name, "value": base.value, "heads": results}


def _clearest(evidence: tuple[Evidence, ...]) -> Evidence | None:
    playable = [one for one in held(evidence) if isinstance(members[one.role], Playable)]
    return playable[0] if playable else None


def comparison(
    metric: Metric, base: np.ndarray, off: np.ndarray, own: np.ndarray, alone: np.ndarray, *, seed: int = 0
) -> dict[str, Any]:
    """Changes of the metric, statistics [N, C] each, and the share that is kept; intervals over examples."""
    others = np.stack([off, own, alone])
    changes = paired_bootstrap(base, others, metric.of_sums, resamples=_RESAMPLES, seed=seed)
    named: dict[str, Any] = {
        name: change._asdict() for name, change in zip(("off", "played", "alone"), changes, strict=True)
    }
    return {**named, "kept": _kept(metric, np.stack([base, off, alone], axis=1), changes[0], seed)}


def _kept(metric: Metric, statistics_N3C: np.ndarray, off: Comparison, seed: int) -> dict[str, float] | None:
    """None where the interval of what the head is worth has 0 in it: a share of nothing says nothing."""
    worst = max(metric.gain(off.low), metric.gain(off.high))
    if not worst < 0:
        return None

    def share(sums: np.ndarray) -> np.ndarray:
        value = metric.of_sums(sums)
        return np.asarray(1 - (value[..., 2] - value[..., 0]) / (value[..., 1] - value[..., 0]))

    drawn = np.concatenate([share(sums) for sums in bootstrap_sums(statistics_N3C, resamples=_RESAMPLES, seed=seed)])
    low, high = np.percentile(drawn, [2.5, 97.5])
    return {"value": float(share(statistics_N3C.sum(0))), "low": float(low), "high": float(high)}
