"""Moments: sums over the rows of two matrices that are given in pieces. Knows numbers, no model.

All that a least-squares fit needs, in float64; the size does not depend on the number of rows. With several processes,
each sums its own rows, and `shared` gives all of them the total.
Shapes: N rows, K inputs, O outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from headcount import processes


@dataclass(frozen=True)
class Moments:
    """Sums over the rows of inputs X [N, K] and targets Y [N, O]."""

    count: Tensor
    x_K: Tensor
    y_O: Tensor
    xx_KK: Tensor
    xy_KO: Tensor
    yy: Tensor  # of all squares of Y

    @classmethod
    def none(cls, inputs: int, outputs: int, device: torch.device | None = None) -> Moments:
        shapes = ((), (inputs,), (outputs,), (inputs, inputs), (inputs, outputs), ())
        return cls(*(torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes))

    def add(self, x_NK: Tensor, y_NO: Tensor) -> None:
        x_NK, y_NO = x_NK.double(), y_NO.double()
        self.count.add_(len(x_NK))
        self.x_K.add_(x_NK.sum(0))
        self.y_O.add_(y_NO.sum(0))
        self.xx_KK.addmm_(x_NK.T, x_NK)
        self.xy_KO.addmm_(x_NK.T, y_NO)
        self.yy.add_(y_NO.square().sum())

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def inputs(self, places: Tensor) -> Moments:
        """The moments of these inputs only."""
        return Moments(
            self.count, self.x_K[places], self.y_O, self.xx_KK[places][:, places], self.xy_KO[places], self.yy
        )

    def shared(self) -> Moments:
        """The moments summed over all processes."""
        total, *rest_of_processes = processes.gather(self)
        for other in rest_of_processes:
            total = total + other
        return total

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        return self.x_K / self.count, self.y_O / self.count

    def about(self, origin_K: Tensor, origin_O: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means over rows of (x - a)(x - a)' [K, K], (x - a)(y - b)' [K, O] and |y - b|^2 for an origin (a, b)."""
        x_K, y_O = self.means
        xx_KK = self.xx_KK / self.count - torch.outer(x_K, origin_K) - torch.outer(origin_K, x_K - origin_K)
        xy_KO = self.xy_KO / self.count - torch.outer(x_K, origin_O) - torch.outer(origin_K, y_O - origin_O)
        return xx_KK, xy_KO, self.yy / self.count - 2 * y_O @ origin_O + origin_O.square().sum()

    def error(self, weight_OK: Tensor, bias_O: Tensor | None) -> float:
        """Mean over rows of |W x + b - y|^2."""
        zero_K = torch.zeros_like(self.x_K)
        xx_KK, xy_KO, yy = self.about(zero_K, torch.zeros_like(self.y_O) if bias_O is None else bias_O)
        return float(((weight_OK @ xx_KK) * weight_OK).sum() - 2 * (weight_OK * xy_KO.T).sum() + yy)
