"""scoring: one score of every head of one model, as a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from headcount.progress import Progress, named, silent
from headcount.record import Record
from headcount.scores.score import options_of, score
from headcount.tasks.task import Task


def scoring(
    model: nn.Module,
    task: Task,
    *,
    method: str,
    name: str = "",
    keep: Path | None = None,
    progress: Progress = silent,
    **options: Any,
) -> Record:
    """Score the heads by a method; the record holds values, intervals where there are any, and ranks.

    keep: a folder for unfinished work; the same call goes on with it, where the score can.
    """
    running = {"keep": keep, "progress": named(f"scoring by {method}", progress)}
    options |= {option: value for option, value in running.items() if option in options_of(method)}
    found = score(method, model, task, **options)
    heads = [str(head) for head in found.heads]
    parts: dict[str, Any] = {
        "method": method,
        "scores": {head: found[head] for head in heads},
        "ranks": {head: found.rank()[head] for head in heads},
        "low": {head: found.low[head] for head in heads} if found.low is not None else None,
        "high": {head: found.high[head] for head in heads} if found.high is not None else None,
    }
    if found.details:
        parts["details"] = found.details
    return Record("score", replace(found.signature, model=name), parts)
