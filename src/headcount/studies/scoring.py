"""scoring: one score of every head of one model, as a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

from torch import nn

from headcount.errors import FolderError
from headcount.progress import Progress, named, silent
from headcount.record import Record
from headcount.record.results.score import Conservation, Cut, Scoring
from headcount.scores.score import Scores, options_of, resumable_score
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

    Heads whose attention does not run on the data have no score and are left out.
    folder: for unfinished work, from which the same call resumes if the score supports it. It stays until the caller
        has saved the record.
    """
    running = {"folder": folder, "progress": named(f"scoring by {method}", progress)}
    if folder is not None and "folder" not in options_of(method) and any(folder.rglob("*.safetensors")):
        raise FolderError(
            f"{folder} is unfinished work of another score than {method!r}. Run that command again to finish it, or "
            "give another folder."
        )
    options |= {option: value for option, value in running.items() if option in options_of(method)}
    scored = resumable_score(method, model, task, **options)
    heads, ranks = [str(head) for head in scored.heads if not isnan(scored[head])], scored.rank()
    leads, left_out = (_of_heads(heads, scored.details.get(name)) for name in ("leads", "left_out"))
    parts = Scoring(
        method=method,
        scores={head: scored[head] for head in heads},
        ranks={head: ranks[head] for head in heads},
        low={head: scored.low[head] for head in heads} if scored.low is not None else None,
        high={head: scored.high[head] for head in heads} if scored.high is not None else None,
        conservation=conservation(scored) if "cuts" in scored.details else None,
        leads=leads,
        left_out=left_out,
    )
    return Record("score", replace(scored.signature, model=name), parts)


def _of_heads(heads: Sequence[str], values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {head: values[head] for head in heads if head in values}


def conservation(relevance: Scores) -> Conservation:
    """Conservation of relevance, from the details of the score."""
    details = relevance.details
    cuts = {name: Cut(cut["kept"], cut["absorbed"], cut["error"]) for name, cut in details["cuts"].items()}
    return Conservation(details["examples"], details["predictions"], details["absorbed"], cuts)
