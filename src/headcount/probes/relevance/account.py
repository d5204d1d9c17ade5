"""Account: the relevance of constants (mainly biases) in each part of a run. Knows neither models nor rules.

A run is divided into parts; each has a scale of ones [B] that multiplies its constants. The slope of a prediction with
respect to the scale is the relevance of those constants.
"""

from __future__ import annotations

from torch import Tensor

from headcount.errors import ModelError


class Account:
    """One run's scales, by part."""

    def __init__(self) -> None:
        self.part = 0
        self._like: Tensor | None = None
        self._scales: dict[int, Tensor] = {}
        self.weights: list[tuple[int, Tensor]] = []  # attention weights that keep relevance, with their part

    def open(self, total: Tensor) -> None:
        """Set the batch of the run, by any tensor of it."""
        if self._like is None:
            self._like = total.detach()[:, :0]

    @property
    def rows(self) -> int:
        """Number of examples in the batch."""
        return len(self._first)

    @property
    def _first(self) -> Tensor:
        if self._like is None:
            raise ModelError(
                "Relevance reaches a layer outside any stack of layers: it cannot be traced through this model."
            )
        return self._like

    def advance(self) -> None:
        """Start the next part."""
        self.part += 1

    def scale(self) -> Tensor:
        """[B]: the factor of the constants of the current part."""
        if self.part not in self._scales:
            self._scales[self.part] = self._first.new_ones(self.rows, requires_grad=True)
        return self._scales[self.part]

    @property
    def scales(self) -> list[tuple[int, Tensor]]:
        return list(self._scales.items())
