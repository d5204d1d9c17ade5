"""Way: how heads are chosen and what is done for those that are left, read from its name in the trade-off.

CHOICE[+COMPENSATION][/tuned|/untuned|/distilled]

CHOICE         rank-SCORE or random: in this order; fisher, greedy: searched; l0, subset: learned with gates;
               scratch: the heads of another way under new random weights
+COMPENSATION  what stands in for the heads that go, without training; greedy has +lstsq unless another is named
/tuned         fine-tuned after, /untuned: not; unsaid, a choice is tuned where nothing else makes up for its heads
/distilled     whatever is trained is also asked for what the whole model predicts
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.errors import UsageError
from headcount.scores.score import members
from headcount.surgery.compensations.compensation import compensations

LEARNED = ("l0", "subset")
SCRATCH = "scratch"
_SEARCHED = ("fisher", "greedy")
_TUNING = {"tuned": True, "untuned": False}
_DISTILLED = "distilled"


@dataclass(frozen=True)
class Way:
    """One way of pruning."""

    name: str
    choice: str
    compensate: str
    tuned: bool
    distilled: bool = False

    @classmethod
    def parse(cls, name: str) -> Way:
        rest, slash, tuning = name.partition("/")
        choice, plus, compensate = rest.partition("+")
        if choice not in choices():
            raise UsageError(f"Unknown way of pruning {name!r}; known: {', '.join(choices())}; {_MORE}")
        usual = "lstsq" if choice == "greedy" else "none"
        if plus:
            _check_compensation(name, choice, compensate, usual)
        made_up = compensate if plus else usual
        default = made_up == "none" and choice not in _SEARCHED
        if slash:
            _check_tuning(name, choice, tuning, default)
        distilled = tuning == _DISTILLED
        return cls(name, choice, made_up, distilled or _TUNING.get(tuning, default), distilled)

    @property
    def learned(self) -> bool:
        return self.choice in LEARNED

    @property
    def steady(self) -> bool:
        """Whether every seed gives the same: nothing in it is random."""
        return not self.tuned and self.choice != "random"

    @property
    def file(self) -> str:
        """The name as part of a file's."""
        return self.name.replace("/", ".")


def choices() -> tuple[str, ...]:
    return (*LEARNED, "random", SCRATCH, *_SEARCHED, *(f"rank-{name}" for name in members.names() if name != "random"))


_MORE = (
    "rank-SCORE and random also with /untuned; these, fisher and greedy also with +bias, +scale or +lstsq and with "
    "/tuned after that, such as rank-gradient+lstsq or greedy/tuned; all but scratch also with /distilled."
)


def _check_compensation(name: str, choice: str, compensate: str, usual: str) -> None:
    if choice in (*LEARNED, SCRATCH):
        raise UsageError(
            f"{name}: {choice} trains its weights; +COMPENSATION is for heads taken from a finished model."
        )
    if compensate not in compensations:
        raise UsageError(f"{name}: there is no compensation {compensate!r}; there are {', '.join(compensations)}.")
    if compensate == usual:
        raise UsageError(f"{name}: that is what {choice} means; write {choice}.")


def _check_tuning(name: str, choice: str, tuning: str, default: bool) -> None:
    if tuning == _DISTILLED:
        if choice == SCRATCH:
            raise UsageError(f"{name}: scratch is ordinary training, the control; distill the way whose heads it has.")
        return
    if tuning not in _TUNING:
        raise UsageError(f"{name}: after the / comes {', '.join(_TUNING)} or {_DISTILLED}; got {tuning!r}.")
    if choice in LEARNED and tuning == "untuned":
        raise UsageError(f"{name}: what {choice} is without fine-tuning is measured with it, as `cut` of its points.")
    if choice == SCRATCH and tuning == "untuned":
        raise UsageError(f"{name}: new random weights without training are not a model.")
    if _TUNING[tuning] is default:
        short = name.partition("/")[0]
        raise UsageError(f"{name}: {short} is {tuning} anyway; write {short}.")
