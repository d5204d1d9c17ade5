"""Partner: gates that are trained along with a model, at their own rate. Called by the loop, and saved with the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.probes.gates import Gates, Group


class Partner(nn.Module):
    """Gates with new random numbers at every step. Subclasses add what makes gates close."""

    groups: tuple[Group, ...] = ()  # gated heads that share a budget

    def __init__(self, gates: Gates, *, rate: float, seed: int) -> None:
        """rate: learning rate of the gates."""
        super().__init__()
        self.gates, self.rate, self._seed = gates, rate, seed

    def before(self, step: int) -> None:
        """Called before each step, numbered from 1, on all processes.

        The random numbers are the same for all chunks and processes of a step, and after a resume.
        """
        entropy = np.random.SeedSequence([self._seed, step, 1]).generate_state(1)[0]
        self.gates.draw(torch.Generator().manual_seed(int(entropy)))

    def penalty(self) -> Tensor:
        """The penalty, added to the loss of the step."""
        return self.gates.penalty()

    def after(self, step: int) -> None:
        """Called after each step."""

    def report(self) -> dict[str, Any]:
        """Values for the log besides the loss, as plain JSON: open gates, share of settled ones, mean of each."""
        return {
            "open": int((self.gates.chosen() > 0).sum()),
            "settled": self.gates.settled(),
            "gates": {str(head): round(value, 4) for head, value in self.gates.means().items()},
        }
