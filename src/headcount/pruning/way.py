"""Way: the text form of a pipeline, as the trade-off has it.

CHOOSER[+COMPENSATION][/tuned|/untuned|/distilled]

CHOOSER        a score, or rank-SCORE: in this order; fisher, greedy: searched; l0, subset: learned with gates;
               scratch: the heads of another way under new random weights
+COMPENSATION  what stands in for the heads that go, without training; greedy has +lstsq unless another is named
/tuned         fine-tuned after, /untuned: not; unsaid, a choice is tuned where nothing else makes up for its heads
/distilled     whatever is trained is also asked for what the whole model predicts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headcount.errors import UsageError
from headcount.pruning.choosers.given import Given
from headcount.pruning.pipeline import Chooser, Pipeline, chooser_names, chooser_of, compensations
from headcount.pruning.tuning import Tuning
from headcount.selection.budget import Budget

SCRATCH = "scratch"
_TUNING = {"tuned": True, "untuned": False}
_DISTILLED = "distilled"


@dataclass(frozen=True)
class Way:
    """A pipeline without its numbers: how many heads stay, how long it trains."""

    name: str
    chooser: Chooser | None  # None: the heads of another way
    compensate: str
    tuned: bool
    distilled: bool = False

    @classmethod
    def parse(cls, text: str) -> Way:
        stages, slash, tuning = text.partition("/")
        choose, plus, compensate = stages.partition("+")
        if choose != SCRATCH and choose not in chooser_names() and not choose.startswith("rank-"):
            raise UsageError(
                f"Unknown way of pruning {text!r}; known: {', '.join((*chooser_names(), SCRATCH))}; {_MORE}"
            )
        chooser = None if choose == SCRATCH else chooser_of(choose)
        name = chooser.name if chooser else SCRATCH
        usual = chooser.usual_compensation if chooser else "none"
        if plus:
            _check_compensation(text, name, chooser, compensate)
        default = chooser is None or (chooser.usually_tuned and (compensate if plus else usual) == "none")
        if slash:
            _check_tuning(text, name, chooser, tuning, default)
        distilled = tuning == _DISTILLED
        return cls(
            name + text[len(choose) :], chooser, compensate if plus else usual,
            distilled or _TUNING.get(tuning, default), distilled,
        )  # fmt: skip

    @property
    def scratch(self) -> bool:
        return self.chooser is None

    @property
    def learned(self) -> bool:
        """Whether weights learn while heads are chosen."""
        return self.chooser is not None and self.chooser.trains

    @property
    def steady(self) -> bool:
        """Whether every seed gives the same: nothing in it is random."""
        return not self.tuned and self.chooser is not None and not self.chooser.random

    @property
    def file(self) -> str:
        """The name as part of a file's."""
        return self.name.replace("/", ".")

    def pipeline(
        self, keep: int, tuning: Tuning, *, kinds: tuple[str, ...] | None = None, seed: int = 0, **options: Any
    ) -> Pipeline:
        """The pipeline with its numbers. options: of the chooser."""
        if self.chooser is None:
            raise UsageError("scratch has the heads of another way: see `scratch_pipeline`.")
        chooser = chooser_of(self.chooser.name, options)
        used = tuning if self.tuned else None
        return Pipeline(chooser, Budget(heads=keep), kinds, self.compensate, used, seed=seed)


def scratch_pipeline(heads: tuple[str, ...], tuning: Tuning, *, seed: int) -> Pipeline:
    """Ordinary training of a model that has these heads, from random weights."""
    return Pipeline(Given(keep=heads), tuning=tuning, seed=seed)


_MORE = (
    "scores also with /untuned; these, fisher and greedy also with +bias, +scale or +lstsq and with /tuned after that, "
    "such as rank-gradient+lstsq or greedy/tuned; all but scratch also with /distilled."
)


def _check_compensation(text: str, name: str, chooser: Chooser | None, compensate: str) -> None:
    if chooser is None or chooser.trains:
        raise UsageError(f"{text}: {name} trains its weights; +COMPENSATION is for heads taken from a finished model.")
    if compensate not in compensations:
        raise UsageError(f"{text}: there is no compensation {compensate!r}; there are {', '.join(compensations)}.")
    if compensate == chooser.usual_compensation:
        raise UsageError(f"{text}: that is what {name} means; write {name}.")


def _check_tuning(text: str, name: str, chooser: Chooser | None, tuning: str, default: bool) -> None:
    if tuning == _DISTILLED:
        if chooser is None:
            raise UsageError(f"{text}: scratch is ordinary training, the control; distill the way whose heads it has.")
        return
    if tuning not in _TUNING:
        raise UsageError(f"{text}: after the / comes {', '.join(_TUNING)} or {_DISTILLED}; got {tuning!r}.")
    if chooser is None and tuning == "untuned":
        raise UsageError(f"{text}: new random weights without training are not a model.")
    if chooser is not None and chooser.trains and tuning == "untuned":
        raise UsageError(f"{text}: what {name} is without fine-tuning is measured with it, as `cut` of its points.")
    if _TUNING[tuning] is default:
        short = text.partition("/")[0]
        raise UsageError(f"{text}: {short} is {tuning} anyway; write {short}.")
