"""Scores: one number per head with interval and signature. Higher always means keep."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from torch import nn

from headcount.errors import UsageError, check_type
from headcount.heads import Head, HeadGrid
from headcount.record import Signature
from headcount.registry import Registry
from headcount.scores.pieces import remove_pieces
from headcount.statistics import mean_ends
from headcount.tasks.task import Task


class Scores(HeadGrid):
    """One score per head; higher means more important. A HeadGrid with intervals and a signature.

    Attributes:
        signature: Model, data and arguments of the score.
        low: Lower ends of the 95% intervals, if the method gives any.
        high: Upper ends.
        p: p-values of the hypothesis that a head does not matter, if the method tests it.
        corrected: The p-values after Holm's correction for the number of heads.
        details: Further results of the method, as plain JSON.
    """

    def __init__(
        self,
        values: Mapping[Head, object] | Iterable[tuple[Head, object]],
        *,
        signature: Signature,
        low: HeadGrid | None = None,
        high: HeadGrid | None = None,
        p: HeadGrid | None = None,
        corrected: HeadGrid | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Create scores from (head, value) pairs. The other arguments are the attributes of the same name."""
        super().__init__(values, "float64")
        self.signature = signature
        self.low = low
        self.high = high
        self.p = p
        self.corrected = corrected
        self.details = dict(details or {})

    def _tooltip(self, head: Head, value: object) -> str:
        text = super()._tooltip(head, value)
        if self.low is not None and self.high is not None:
            text += f" (95% {self.low[head]:.3g} to {self.high[head]:.3g})"
        if self.p is not None and self.corrected is not None:
            text += f", p {self.p[head]:.2g}, corrected {self.corrected[head]:.2g}"
        return text

    def _from(self) -> str:
        return f"higher = keep | {self.signature}"


def scores(
    heads: tuple[Head, ...],
    values: np.ndarray,
    signature: Signature,
    *,
    error: np.ndarray | None = None,
    cubes: np.ndarray | None = None,
    count: float = 0,
    least: float = -np.inf,
    normalize: bool,
    details: Mapping[str, Any] | None = None,
) -> Scores:
    """Scores from numbers in the order of `heads`, with a t-interval if their standard error is given.

    error: of the scores as they are returned. cubes: their third central moments, if values may have a long tail.
    count: number of examples, or other values, that both were computed from; one gives no interval.
    least: the smallest possible score, at which intervals end.
    normalize: divide by the L2 norm over the heads of each layer and kind; a layer of zeros stays zero.
    """
    values = values / layer_norms(heads, values) if normalize else values
    low = high = None
    if error is not None:
        ends = mean_ends(values, error, np.zeros_like(values) if cubes is None else cubes, count)
        low, high = (HeadGrid(list(zip(heads, np.maximum(end, least), strict=True))) for end in ends)
    return Scores(list(zip(heads, values, strict=True)), signature=signature, low=low, high=high, details=details)


def layer_norms(heads: tuple[Head, ...], values: np.ndarray) -> np.ndarray:
    """For each head, the L2 norm of the values of its layer and kind; 1 if all are zero."""
    norms = np.ones_like(values)
    for site in dict.fromkeys(head.site for head in heads):
        places = [index for index, head in enumerate(heads) if head.site == site]
        norms[places] = np.linalg.norm(values[places]) or 1.0
    return norms


WITHOUT_TEXT = ("magnitude", "random")  # scores that read no data
members: Registry[Callable[..., Scores]] = Registry("score", "headcount.scores", "SCORE")


def score(name: str, model: nn.Module, task: Task | None = None, **options: Any) -> Scores:
    """Score every head of a model.

    Args:
        name: Name of the score: "ablation", "attribution-patching", "confidence", "fisher", "gradient",
            "integrated-gradients", "magnitude", "random", "relevance" or "shapley".
        model: The model.
        task: Data to score heads on. "magnitude" and "random" need none.
        options: Options of the score, such as `granularity` or `normalize`.

    Returns:
        The scores; higher means more important.

    Raises:
        UnknownName: If there is no score of this name.
        UsageError: If the score has no such option, or needs a task.
    """
    scored = resumable_score(name, model, task, **options)
    if options.get("folder") is not None:
        remove_pieces(options["folder"])
    return scored


def resumable_score(name: str, model: nn.Module, task: Task | None = None, **options: Any) -> Scores:
    """`score`, whose pieces stay in `folder`: the caller removes them after the result is saved."""
    allowed = options_of(name)
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise UsageError(f"The {name} score has no option {unknown[0]!r}; it has {', '.join(allowed) or 'none'}.")
    check_type("model", model, nn.Module, "a PyTorch model: hc.score(name, model, task)")
    if task is not None:
        check_type("task", task, Task, "a task, from hc.task(...) or hc.task.of(...)")
        task.check(model)
    return members[name](model, task, **options)


def options_of(name: str) -> tuple[str, ...]:
    """Names of the options of a score."""
    kinds = inspect.signature(members[name]).parameters.values()
    return tuple(option.name for option in kinds if option.kind is option.KEYWORD_ONLY)
