"""Way: the text form of a pipeline, as used in the trade-off.

CHOOSER[:SHAPE][+COMPENSATION][/tuned|/untuned|/distilled]

CHOOSER        a score or rank-SCORE: ranked; fisher, greedy: searched; l0, subset: learned with gates;
               scratch: the heads of another way with new random weights
:SHAPE         constraints on the remaining heads: uniform, even, group, at-least=N, first=N, multiple=N, separated by
               colons, such as greedy:even:first=1
+COMPENSATION  how the removal is compensated without training; greedy has +lstsq unless another is named
/tuned         fine-tuned afterwards; /untuned: not. By default a choice is tuned if it is not compensated
/distilled     training includes the distillation loss
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headcount.errors import UsageError
from headcount.pruning.choosers.given import Given
from headcount.pruning.pipeline import Chooser, Pipeline, chooser_names, chooser_of, compensations
from headcount.pruning.tuning import Tuning
from headcount.selection.budget import Budget
from headcount.selection.shape import FREE, Shape

SCRATCH = "scratch"
_TUNING = {"tuned": True, "untuned": False}
_DISTILLED = "distilled"


@dataclass(frozen=True)
class Way:
    """A pipeline without its numbers of heads and steps."""

    name: str
    chooser: Chooser | None  # None: the heads of another way
    compensate: str
    tuned: bool
    distilled: bool = False
    shape: Shape = FREE

    @classmethod
    def parse(cls, text: str) -> Way:
        """Parse a way. Defaults may be written out and are left out of the name."""
        stages, slash, tuning = text.partition("/")
        shaped, plus, compensate = stages.partition("+")
        choose, _, shape_text = shaped.partition(":")
        shape = Shape.parse(shape_text)
        if choose == SCRATCH:
            _check_scratch(text, plus or shape_text, tuning)
            return cls(SCRATCH, None, "none", tuned=True)
        if choose not in chooser_names() and not choose.startswith("rank-"):
            names = ", ".join((*chooser_names(), SCRATCH))
            raise UsageError(f"Unknown way of pruning {text!r}; known: {names}; {_MORE}")
        chooser = chooser_of(choose)
        if plus:
            _check_compensation(text, chooser, compensate)
        compensate = compensate if plus else chooser.usual_compensation
        if slash:
            _check_tuning(text, chooser, tuning)
        distilled = tuning == _DISTILLED
        tuned = distilled or _TUNING.get(tuning, chooser.usually_tuned and compensate == "none")
        name = chooser.spell(compensate, tuned=tuned, distilled=distilled, shape=shape)
        return cls(name, chooser, compensate, tuned, distilled, shape)

    @property
    def scratch(self) -> bool:
        return self.chooser is None

    @property
    def learned(self) -> bool:
        """Whether weights are trained while heads are chosen."""
        return self.chooser is not None and self.chooser.trains

    @property
    def steady(self) -> bool:
        """Whether nothing is random, so that every seed gives the same model."""
        return not self.tuned and self.chooser is not None and not self.chooser.random

    @property
    def file(self) -> str:
        """The name as part of a file name."""
        return self.name.replace("/", ".").replace(":", "_")

    def pipeline(
        self, keep: int, tuning: Tuning, *, kinds: tuple[str, ...] | None = None, seed: int = 0, **options: Any
    ) -> Pipeline:
        """The pipeline with its numbers. options: of the chooser."""
        if self.chooser is None:
            raise UsageError("scratch copies the heads of another way: see `scratch_pipeline`.")
        chooser = chooser_of(self.chooser.name, options)
        used = tuning if self.tuned else None
        return Pipeline(chooser, Budget(heads=keep), kinds, self.compensate, used, seed=seed, shape=self.shape)


def scratch_pipeline(heads: tuple[str, ...], tuning: Tuning, *, seed: int) -> Pipeline:
    """Ordinary training of a model with these heads from random weights. Its caller knows what chose them."""
    return Pipeline(Given(keep=heads, known=True), tuning=tuning, seed=seed)


_MORE = (
    "scores also with /untuned; these, fisher and greedy also with +bias, +scale or +lstsq and with /tuned after that, "
    "such as rank-gradient+lstsq or greedy/tuned; all but scratch also with /distilled."
)


def _check_scratch(text: str, further_stage: str, tuning: str) -> None:
    if further_stage:
        raise UsageError(
            f"{text}: scratch trains new weights; :SHAPE and +COMPENSATION are only for pruning a trained model."
        )
    if tuning == "untuned":
        raise UsageError(f"{text}: scratch starts from random weights and must be trained; leave out /untuned.")
    if tuning not in ("", "tuned"):
        raise UsageError(f"{text}: scratch is the control and is trained without a teacher; leave out /distilled.")


def _check_compensation(text: str, chooser: Chooser, compensate: str) -> None:
    if chooser.trains:
        raise UsageError(
            f"{text}: {chooser.name} trains the weights; +COMPENSATION is only for pruning without training."
        )
    if compensate not in compensations:
        raise UsageError(f"{text}: there is no compensation {compensate!r}; there are {', '.join(compensations)}.")


def _check_tuning(text: str, chooser: Chooser, tuning: str) -> None:
    if tuning not in (*_TUNING, _DISTILLED):
        raise UsageError(f"{text}: after the slash, give {', '.join(_TUNING)} or {_DISTILLED}; got {tuning!r}.")
    if chooser.trains and tuning == "untuned":
        raise UsageError(
            f"{text}: {chooser.name} already records the quality before fine-tuning (`cut`); leave out /untuned."
        )
