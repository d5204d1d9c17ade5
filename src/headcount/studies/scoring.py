"""scoring: one score of every head of one model, as a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from headcount.progress import Progress, named, silent
from headcount.record import Record
from headcount.record.results.score import Conservation, Cut, Scoring
from headcount.scores.score import Scores, options_of, score
from headcount.tasks.task import Task


def scoring(
    model: nn.Module,
    task: Task,
    *,
    method: str,
    name: str = "",
    folder: Path | None = None,
    progress: Progress = silent,
    **options: Any,
) -> Record[Scoring]:
    """Score the heads by a method; the record has values, intervals if there are any, and ranks.

    folder: for unfinished work, from which the same call resumes if the score supports it.
    """
    running = {"folder": folder, "progress": named(f"scoring by {method}", progress)}
    options |= {option: value for option, value in running.items() if option in options_of(method)}
    scored = score(method, model, task, **options)
    heads = [str(head) for head in scored.heads]
    parts = Scoring(
        method=method,
        scores={head: scored[head] for head in heads},
        ranks={head: scored.rank()[head] for head in heads},
        low={head: scored.low[head] for head in heads} if scored.low is not None else None,
        high={head: scored.high[head] for head in heads} if scored.high is not None else None,
        conservation=conservation(scored) if "cuts" in scored.details else None,
        leads=scored.details.get("leads"),
        left_out=scored.details.get("left_out"),
    )
    return Record("score", replace(scored.signature, model=name), parts)


def conservation(relevance: Scores) -> Conservation:
    """Conservation of relevance, from the details of the score."""
    details = relevance.details
    cuts = {name: Cut(cut["kept"], cut["absorbed"], cut["error"]) for name, cut in details["cuts"].items()}
    return Conservation(details["examples"], details["predictions"], details["absorbed"], cuts)
