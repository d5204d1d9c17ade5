"""Budget: how much of a model to keep: a number of heads, or a cost of the pruned model."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

from headcount.errors import UsageError, check_name, check_type

Unit = Literal["heads", "parameters", "flops", "milliseconds"]
_SPELLINGS: dict[str, Unit] = {
    "": "heads", "heads": "heads", "params": "parameters", "parameters": "parameters", "flops": "flops",
    "ms": "milliseconds", "milliseconds": "milliseconds",
}  # fmt: skip
_TIMES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_TEXT = re.compile(r"(?P<number>\d+(\.\d+)?(e[+-]?\d+)?)(?P<times>[kMGT]?)(?P<share>%?)(?P<unit>[a-z]*)")
_FORMS = "10 or 40% of the heads; 90%params, 5Mparams; 80%flops, 2Gflops; 75%ms, 12.5ms of the whole model"


@dataclass(frozen=True)
class Budget:
    """How much of a model may stay: a number or share of heads, or the cost of the pruned model. Give exactly one.

    Attributes:
        heads: Number of heads to keep.
        share: Share of `unit` to keep, from 0 to 1: 0.4 is 40%.
        parameters: Most parameters of the pruned model, all of its weights included.
        flops: Most FLOPs of one forward pass of the pruned model.
        milliseconds: Longest time of one forward pass of the pruned model, measured on this machine.
        unit: What `share` is a share of: "heads", or the "parameters", "flops" or "milliseconds" of the whole model.

    Raises:
        UsageError: If none or several of them are given, or a value is out of range.
    """

    heads: int | None = None
    share: float | None = None
    parameters: int | None = None
    flops: float | None = None
    milliseconds: float | None = None
    unit: Unit = "heads"

    def __post_init__(self) -> None:
        units = [name for name in ("share", *get_args(Unit)) if getattr(self, name) is not None]
        if len(units) != 1:
            raise UsageError(
                "A budget is one number: Budget(heads=10), Budget(share=0.4), Budget(parameters=5_000_000), "
                "Budget(flops=2e9), Budget(milliseconds=12.5) or Budget(share=0.8, unit='flops'); "
                f"got {units or 'none'}."
            )
        check_name("unit of a budget", self.unit, get_args(Unit))
        amount = getattr(self, units[0])
        if not _is_number(amount):
            raise UsageError(
                f"{units[0]} must be a number; got {amount!r}. Budget.parse reads a text such as '10' or '40%'."
            )
        if self.heads is not None and (not math.isfinite(self.heads) or self.heads < 0 or self.heads % 1):
            raise UsageError(f"heads must be a whole number, 0 or more; got {self.heads}.")
        if self.share is not None and not (math.isfinite(self.share) and 0 <= self.share <= 1):
            raise UsageError(f"share must be between 0 and 1 (0.4 is 40%); got {self.share}.")
        if units[0] not in ("heads", "share") and not (math.isfinite(amount) and amount > 0):
            raise UsageError(f"A budget of {units[0]} must be above 0; got {amount}.")
        if self.share is None and self.unit != "heads":
            raise UsageError(f"unit={self.unit!r} goes with share= only; Budget({units[0]}=...) already sets the unit.")

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Parse a budget as written on the command line: 10, 40%, 90%params, 5Mparams, 80%flops, 12.5ms."""
        check_type("A budget to parse", text, str, "text such as '10' or '40%'")
        match = _TEXT.fullmatch(text.strip())
        if match is None or match["unit"] not in _SPELLINGS:
            raise UsageError(f"{text!r} is not a budget; expected a number or a percentage: {_FORMS}.")
        unit, number = _SPELLINGS[match["unit"]], float(match["number"]) * _TIMES[match["times"]]
        if not math.isfinite(number):
            raise UsageError(f"{text!r} is too large for a budget: {_FORMS}.")
        if match["share"] and number > 100:
            raise UsageError(f"A percentage must be between 0% and 100%; got {text!r}.")
        if match["share"]:
            return cls(share=number / 100, unit=unit)
        amount: Any = int(number) if unit in ("heads", "parameters") and number == int(number) else number
        return cls(**{str(unit): amount})

    def __str__(self) -> str:
        """The text form that `parse` reads."""
        spelling = next(text for text, unit in _SPELLINGS.items() if unit == self.counts)
        if self.share is not None:
            return f"{100 * self.share:.12g}%{spelling}"
        return f"{getattr(self, self.counts):.12g}{spelling}"

    @property
    def counts(self) -> Unit:
        """The unit that the budget counts."""
        if self.share is not None:
            return self.unit
        return next(unit for unit in get_args(Unit) if getattr(self, unit) is not None)

    def of(self, total: int) -> int:
        """Number of heads to keep out of `total`; a share is rounded to the nearest number."""
        if self.counts != "heads":
            raise UsageError(f"This budget counts {self.counts}, not heads.")
        if self.share is not None:
            return math.floor(self.share * total + 0.5)
        if self.heads is None or self.heads > total:
            raise UsageError(f"The budget keeps {self.heads} heads, but there are only {total}.")
        return int(self.heads)

    def limit(self, total: float) -> float:
        """Highest cost of the pruned model, if the whole model costs `total`."""
        return self.share * total if self.share is not None else float(getattr(self, self.counts))


def _is_number(amount: object) -> bool:
    return isinstance(amount, Real) and not isinstance(amount, bool)


def parse_budgets(text: str) -> tuple[Budget | dict[str, Budget], str | None]:
    """Parse budgets: 10 or 40%; encoder=10, which gives a budget and a kind; encoder=8,cross=50%."""
    if "=" not in text:
        return Budget.parse(text), None
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    budgets = {kind.strip(): Budget.parse(amount) for kind, _, amount in parts}
    if len(budgets) < len(parts) or not all(budgets):
        raise UsageError(f"A budget by kind must name each kind once, such as encoder=8,cross=50%; got {text!r}.")
    if len(budgets) > 1:
        return budgets, None
    ((kind, budget),) = budgets.items()
    return budget, kind
