"""Row: one measured ratio and the target it is held against."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headcount.statistics import Interval


@dataclass(frozen=True)
class Row:
    """A ratio with its 95% interval; a target is met when the ratio itself meets it."""

    name: str
    interval: Interval
    seconds: Mapping[str, float]  # the two medians behind the ratio
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= self.interval.value <= high

    @property
    def target(self) -> str:
        bounds = ((">=", self.at_least), ("<=", self.at_most))
        return " and ".join(f"{sign} {bound}" for sign, bound in bounds if bound is not None)

    def to_plain(self) -> dict[str, Any]:
        ratio = {"ratio": self.interval.value, "low": self.interval.low, "high": self.interval.high}
        rest = {key: value for key, value in asdict(self).items() if key in ("seconds", "note")}
        return {"name": self.name, **ratio, "target": self.target, "met": self.met, **rest}
