"""scratch: ordinary training from new random weights, a control (Voita et al. 2019, section 6.3 and footnote 8)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from headcount.pruning.tuner import Tuner
from headcount.training.transformer import forget


class Scratch(Tuner):
    """Trains the whole model from random weights."""

    replaces_weights = True

    def begin(self, model: nn.Module, *, seed: int) -> None:
        forget(model, seed=seed)

    def trained_kinds(self, kinds: Sequence[str] | None) -> None:
        return None


TUNER = Scratch()
