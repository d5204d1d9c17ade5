"""Members of headcount in a package of their own: a score, a chooser and a runtime that take heads by the alphabet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headcount.exports.agreement import Agreement
from headcount.exports.runtime import Obstacle, Runtime
from headcount.pruning.pipeline import Choice, Chooser
from headcount.record import Signature
from headcount.scores.score import Scores, scores
from headcount.sites.locate import locate


def alphabet(model: Any, task: Any = None) -> Scores:
    """Heads in the order of their names, the first worth most."""
    heads = locate(model).heads
    values = np.arange(len(heads), 0, -1, dtype=float)
    return scores(heads, values, Signature(arguments={"score": "alphabet"}), normalize=False)


@dataclass(frozen=True)
class FirstHeads(Chooser):
    """Keeps the first heads of the model; knows of no shape."""

    about: ClassVar[str] = "the first heads of the model stay"

    def choose(self, model: Any, data: Any, pipeline: Any, execution: Any) -> Choice:
        sites = locate(model)
        return Choice(sites.mask(keep=sites.heads[: pipeline.keep.of(len(sites.heads))]), model)


class Listing(Runtime):
    """The names of all heads, one in a line."""

    title = "A list of heads"
    types = ("text",)
    suffixes = (".txt",)

    def suffix(self, model: Any) -> str:
        return ".txt"

    def obstacle(self, model: Any) -> Obstacle | None:
        return None

    def tolerance(self, dtype: str) -> float:
        return 0.0

    def write(self, subject: Any, target: Path, *, dtype: str) -> None:
        target.write_text("".join(f"{head}\n" for head in locate(subject.model).heads))

    def check(self, subject: Any, target: Path) -> Agreement:
        heads, lines = locate(subject.model).heads, target.read_text().splitlines()
        return Agreement("a list", "0.1", "names", 0.0, sum(map(str.__eq__, map(str, heads), lines)), len(heads))


SCORE, CHOOSER, RUNTIME = alphabet, FirstHeads, Listing()
