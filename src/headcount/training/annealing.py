"""Annealing: subset gates whose temperature falls during training (Li, Cotterell, Sachan 2021)."""

from __future__ import annotations

from typing import Any

from headcount.errors import UsageError
from headcount.probes.subset import SubsetGates
from headcount.training.partner import Partner


class Annealing(Partner):
    """The temperature falls by the same factor at every step of the first part, then is constant."""

    gates: SubsetGates

    def __init__(
        self,
        gates: SubsetGates,
        *,
        steps: int,
        hot: float = 0.1,
        cold: float = 1e-8,
        share: float = 0.5,
        rate: float = 0.2,
        seed: int = 0,
    ) -> None:
        """hot, cold: temperatures; translation .1, classification 1000 to 1e-8 in the paper. share: of the steps."""
        super().__init__(gates, rate=rate, seed=seed)
        if not 0 < cold <= hot or not 0 < share <= 1:
            raise UsageError(
                f"hot must be at least cold, both above 0, and share above 0 and at most 1; "
                f"got hot {hot}, cold {cold}, share {share}."
            )
        self._hot, self._cold, self._falling = hot, cold, max(1.0, share * steps)
        self.groups = gates.groups

    def temperature(self, step: int) -> float:
        progress = min(1.0, step / self._falling)
        return float(self._hot ** (1 - progress) * self._cold**progress)

    def before(self, step: int) -> None:
        self.gates.temperature = self.temperature(step)
        super().before(step)

    def report(self) -> dict[str, Any]:
        return {"temperature": self.gates.temperature, **super().report()}
