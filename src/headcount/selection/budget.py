"""Budget: how many heads may stay."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headcount.errors import UsageError


@dataclass(frozen=True)
class Budget:
    """How much may stay: a number of heads, or a share of them (0.4 is 40%)."""

    heads: int | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.heads is None) == (self.share is None):
            raise UsageError("A budget is a number of heads or a share of them: Budget(heads=10) or Budget(share=0.4).")
        if self.heads is not None and (self.heads < 0 or self.heads != int(self.heads)):
            raise UsageError(f"A budget keeps a whole number of heads, 0 or more; got {self.heads}.")
        if self.share is not None and not (math.isfinite(self.share) and 0 <= self.share <= 1):
            raise UsageError(f"A share lies between 0 and 1 (0.4 is 40%); got {self.share}.")

    def of(self, total: int) -> int:
        """The heads that may stay of so many; a share is rounded to the nearest."""
        if self.share is not None:
            return math.floor(self.share * total + 0.5)
        if self.heads is None or self.heads > total:
            raise UsageError(f"The budget keeps {self.heads} heads, but there are only {total}.")
        return int(self.heads)
