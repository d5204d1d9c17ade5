"""agreement: how well cheap scores agree with exact ablation, and the loss of pruning by each of them.

Shapes: H heads, R resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import nn

from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.errors import HeadcountError, UsageError
from headcount.heads import Head, HeadGrid, sites_of
from headcount.probes.masks import masked
from headcount.progress import Progress, named, silent
from headcount.pruning.ranking import untied
from headcount.record import Record, Signature
from headcount.record.results.agreement import Agreement, OrderCost, TopOverlap
from headcount.scores.pieces import shelf
from headcount.scores.score import members, options_of, score
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import Correlation, spearman
from headcount.tasks.overlap import measured_on
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task

EXACT = "ablation"
METHODS = (
    "gradient", "fisher", "integrated-gradients", "attribution-patching", "shapley", "relevance", "confidence",
    "magnitude", "random",
)  # fmt: skip
TOP = (0.1, 0.25, 0.5)  # shares of the heads whose overlap is counted
REMOVED = (0.2, 0.4, 0.6)  # shares of heads to remove


def agreement(
    model: nn.Module,
    task: Task,
    *,
    measure_on: Task | None = None,
    methods: Sequence[str] = METHODS,
    name: str = "",
    revision: str | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Record[Agreement]:
    """Score all heads by every method on `task`, compare with ablation, and measure pruned models on `measure_on`.

    A method that cannot score this model or task is left out, with its reason in the record.
    name, revision: of the model, whose folder or hub id says what its heads were chosen on if it is pruned.
    folder: for unfinished work, from which the same call resumes: finished scores, and parts of one that supports it.
    """
    for method in methods:
        members[method]  # raises for an unknown name
    if EXACT in methods or not methods:
        raise UsageError(f"Give at least one score besides {EXACT}, the reference that scores are compared with.")
    by_method, refused = _scores(model, task, (EXACT, *methods), folder, progress)
    ran = [head for head, value in by_method[EXACT].items() if not np.isnan(value)]  # on the data
    by_method = {method: HeadGrid([(head, scores[head]) for head in ran]) for method, scores in by_method.items()}
    exact, measured = by_method[EXACT], measure_on or task
    parts = Agreement(
        metric=measured.metric.name,
        higher_is_better=measured.metric.higher_is_better,
        num_heads=len(exact),
        measured_on=measured_on([*read_chosen_on(name, revision), task], measured),
        by_method={method: {str(head): float(scores[head]) for head in scores} for method, scores in by_method.items()},
        spearman={method: _spearman(scores, exact) for method, scores in by_method.items() if method != EXACT},
        overlap={method: overlaps(scores, exact) for method, scores in by_method.items() if method != EXACT},
        pruning=_pruning(model, measured, by_method, progress),
        refused=refused,
    )
    arguments = {"methods": list(methods), "measured_on": measured.fingerprint}
    return Record("agreement", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def _scores(
    model: nn.Module, task: Task, methods: Sequence[str], folder: Path | None, progress: Progress
) -> tuple[dict[str, HeadGrid], dict[str, str]]:
    """The scores by each method, those that were finished before an interruption as they were; refused ones."""
    by_method: dict[str, HeadGrid] = {}
    refused: dict[str, str] = {}
    finished = shelf(folder / "finished" if folder else None, model, task, _identity(model, task))
    for method in methods:
        earlier = finished.get(method) if finished else None
        if earlier is not None:
            by_method[method] = HeadGrid(list(zip(locate(model).heads, earlier["scores"], strict=True)))
            continue
        running = {
            "folder": folder / method if folder else None,
            "progress": named(f"scoring by {method}", progress),
            "normalize": False,  # ablation compares heads of all layers
        }
        options = {option: value for option, value in running.items() if option in options_of(method)}
        try:
            by_method[method] = score(method, model, task, **options)
        except HeadcountError as error:
            if method == EXACT:
                raise
            refused[method] = str(error)
        else:
            if finished:
                finished.put(method, {"scores": by_method[method].numbers()})
    return by_method, refused


def _identity(model: nn.Module, task: Task) -> dict[str, object]:
    """Settings that finished scores depend on."""
    return {"weights": weight_hash(model), "data": task.fingerprint, "metric": task.metric.name}


def _spearman(scores: HeadGrid, exact: HeadGrid) -> dict[str, Correlation]:
    """All heads, and those of each kind: r with its interval over heads; NaN if it is not defined."""
    groups = {"all": exact.kinds, **({kind: (kind,) for kind in exact.kinds} if len(exact.kinds) > 1 else {})}
    return {group: _over_heads(scores.of(*kinds), exact.of(*kinds)) for group, kinds in groups.items()}


def _over_heads(scores: HeadGrid, exact: HeadGrid) -> Correlation:
    return spearman(scores.numbers(), exact.numbers(), groups=sites_of(exact))


def overlaps(scores: HeadGrid, exact: HeadGrid) -> tuple[TopOverlap, ...]:
    """Of the heads that ablation ranks highest, the share that a score ranks as high; and what chance gives."""
    rows = []
    for share in TOP:
        count = max(1, round(share * len(exact)))
        ours_H, exact_H = (_in_top(np.array([grid[head] for head in exact.heads]), count) for grid in (scores, exact))
        rows.append(TopOverlap(share, count, float(ours_H @ exact_H) / count, count / len(exact)))
    return tuple(rows)


def _in_top(values_H: np.ndarray, count: int) -> np.ndarray:
    """[H]: whether a value is among the highest; equal ones share the places that are left for them.

    In the order of the model they would agree with any score that depends on the layer.
    """
    lowest = np.sort(values_H)[-count]
    above_H, equal_H = values_H > lowest, values_H == lowest
    return above_H + equal_H * ((count - above_H.sum()) / equal_H.sum())


def _pruning(
    model: nn.Module, task: Task, by_method: Mapping[str, HeadGrid], progress: Progress
) -> dict[str, tuple[OrderCost, ...]]:
    """Quality without the lowest heads of each score, and the difference from the order of ablation."""
    counts = [round(share * len(by_method[EXACT])) for share in REMOVED]
    base, qualities = task.quality(model), {}
    for number, (method, scores) in enumerate(by_method.items(), start=1):
        order = untied(scores, model)
        lowest_first = sorted(order.heads, key=lambda head: order[head])
        qualities[method] = [_without(model, task, lowest_first[:count]) for count in counts]
        progress("pruning by each order", number, len(by_method))
    return {
        method: tuple(
            _cost(base, quality, qualities[EXACT][index], counts[index], len(by_method[EXACT]))
            for index, quality in enumerate(measured)
        )
        for method, measured in qualities.items()
    }


def _without(model: nn.Module, task: Task, removed: Sequence[Head]) -> Quality:
    with masked(model, locate(model).mask(off=removed)):
        return task.quality(model)


def _cost(base: Quality, quality: Quality, exact: Quality, removed: int, heads: int) -> OrderCost:
    return OrderCost(removed / heads, removed, quality.value, quality.against(base), quality.against(exact))
