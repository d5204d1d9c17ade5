"""playing: the loss when a head is replaced by its role, compared with the loss without the head.

The share of a head's effect that its role gives is 1 - (loss with the role - loss) / (loss without the head - loss): 1
if the role is all that the head does, 0 if the role is no better than masking the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from headcount.corpora.frequencies import Frequencies
from headcount.corpora.sentences import Sentences
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.head_roles.evidence import HalvedEvidence, held
from headcount.head_roles.measure import Roles, count_corpus, read_sentences
from headcount.head_roles.playing import played
from headcount.head_roles.role import Playable
from headcount.head_roles.role import roles as members
from headcount.hooks import configured_module
from headcount.metrics import Metric
from headcount.probes.masks import masked
from headcount.progress import Progress, silent
from headcount.record.results.roles import Played, PlayedHead
from headcount.sites.causality import is_causal
from headcount.sites.locate import locate
from headcount.statistics import Comparison, Interval, counted, ratio_interval
from headcount.tasks.factory import task
from headcount.tasks.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_RESAMPLES = 2000


def texts_of(sentences: Iterable[Tree | str]) -> list[str]:
    return [item.text if isinstance(item, Tree) else item for item in sentences]


def first_of(sentences: Sentences, count: int | None) -> Sentences:
    """At most this many sentences, with their translations."""
    targets = sentences.targets[:count] if sentences.targets else None
    return replace(sentences, items=sentences.items[:count], targets=targets)


def task_of(model: nn.Module, sentences: Sentences, tokenizer: PreTrainedTokenizerBase) -> Task:
    """The task on the sentences that roles are measured on: the loss of their translations, or of their next tokens."""
    texts, numbers = texts_of(sentences), read_sentences(model, sentences, tokenizer, sentences.targets)
    texts = [texts[number] for number in numbers]
    if sentences.targets is not None:
        targets = [sentences.targets[number] for number in numbers]
        return task("translation", source=texts, target=targets, tokenizer=tokenizer, metric="loss")
    if locate(model).kinds == ("decoder",) and is_causal(model):
        return task("language-modelling", texts=texts, tokenizer=tokenizer, metric="loss")
    raise UsageError(
        f"Replacing heads by roles needs a loss: {type(configured_module(model)).__name__} has none on sentences "
        "without translations. Use a translation model with parallel text, or a language model."
    )


def play(
    model: nn.Module,
    task: Task,
    measured_roles: Roles,
    sentences: Sentences,
    tokenizer: PreTrainedTokenizerBase,
    *,
    frequencies: Frequencies | None = None,
    reading: Mapping[str, object] | None = None,
    progress: Progress = silent,
) -> Played:
    """The task's metric with each head replaced by its clearest role, for heads with a playable role."""
    parts = {
        head: evidence for head in measured_roles.heads if (evidence := _clearest(measured_roles[head])) is not None
    }
    base = task.quality(model)
    if frequencies is None and any(evidence.role == "rare" for evidence in parts.values()):
        frequencies = count_corpus(sentences, tokenizer)  # as for the roles
    options: dict[str, Any] = {"tokenizer": tokenizer, "frequencies": frequencies, **(reading or {})}
    results: dict[str, PlayedHead] = {}
    for count, (head, evidence) in enumerate(parts.items(), start=1):
        part = {head: f"{evidence.role} {evidence.label}"}
        settings = {**options, "trees": list(sentences) if evidence.role == "syntactic" else None}
        with masked(model, locate(model).mask(off=head)):
            off = task.quality(model).statistics
        with played(model, part, elsewhere="own", **settings):
            replaced = task.quality(model).statistics
        with played(model, part, elsewhere="zero", **settings):
            alone = task.quality(model).statistics
        worth = comparison(base.metric, base.statistics, off, replaced, alone)
        results[str(head)] = PlayedHead(evidence.role, evidence.label, *worth)
        progress("heads played by their roles", count, len(parts))
    return Played(base.name, base.value, results)


def _clearest(evidence: tuple[HalvedEvidence, ...]) -> HalvedEvidence | None:
    playable = [item for item in held(evidence) if isinstance(members[item.role], Playable)]
    return playable[0] if playable else None


def comparison(
    metric: Metric,
    base: np.ndarray,
    off: np.ndarray,
    replaced_statistics: np.ndarray,
    alone: np.ndarray,
    *,
    seed: int = 0,
) -> tuple[Comparison, Comparison, Comparison, Interval | None]:
    """Changes of the metric, statistics [N, C] each, and the share that is kept; intervals over examples."""
    variants = np.stack([off, replaced_statistics, alone])
    changes = metric.compare(base, variants, resamples=_RESAMPLES, seed=seed)
    without, replaced, role_alone = changes
    statistics_N3C = counted(np.stack([base, off, alone], axis=1))
    return without, replaced, role_alone, _share_kept(metric, statistics_N3C, without, seed)


def _share_kept(metric: Metric, statistics_N3C: np.ndarray, off: Comparison, seed: int) -> Interval | None:
    """None if the interval of the head's effect contains 0: the share is then undefined."""
    worst = max(metric.gain(off.low), metric.gain(off.high))
    if not worst < 0:
        return None

    def effects(sums: np.ndarray) -> np.ndarray:
        """[..., 2]: of what the head does besides its role, and of the head."""
        value = metric.of_sums(sums)
        return np.asarray(value[..., [2, 1]] - value[..., :1])

    lost = ratio_interval(statistics_N3C, effects, resamples=_RESAMPLES, seed=seed)
    return Interval(1 - lost.value, 1 - lost.high, 1 - lost.low)
