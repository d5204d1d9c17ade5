"""The interface of a compensation: from the calibration data of one site to its new output projection.

A member is a function from a `Calibration` to a `Fit`; `compensations["lstsq"]` is in `lstsq.py`.
Shapes: N rows (tokens that are no padding), K = remaining heads x head size, A = all heads of the site x head size,
O outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headcount.probes.projections import Projection
from headcount.registry import Registry
from headcount.surgery.compensations.moments import Moments
from headcount.surgery.compensations.ridge import Normal


@dataclass(frozen=True)
class Calibration:
    """The calibration data of one site.

    Inputs X are the outputs of the remaining heads, in the pruned model; targets Y are the site's output in the full
    model at the same tokens.
    """

    fit: Moments
    held_out: Moments  # rows for choosing the strength of the ridge
    mean_A: Tensor  # mean output of all heads in the full model
    fit_mean_A: Tensor  # the same without held-out rows
    projection: Projection  # weight [O, A]
    keep: tuple[int, ...]  # indices of the remaining heads
    head_dim: int
    intercept: bool  # whether the projection has, or gets, a bias

    @property
    def all(self) -> Moments:
        return self.fit + self.held_out

    @property
    def places(self) -> Tensor:
        """[K]: the columns of the remaining heads."""
        return columns(self.keep, self.head_dim)

    @property
    def weight_OK(self) -> Tensor:  # noqa: N802
        """Weights of the remaining heads."""
        return self.projection.weight_OK[:, self.places]

    @property
    def bias_O(self) -> Tensor | None:  # noqa: N802
        if self.projection.bias_O is None and self.intercept:
            return torch.zeros_like(self.projection.weight_OK[:, 0])
        return self.projection.bias_O

    def lost(self, moments: Moments) -> Tensor:
        """[O]: mean contribution of the removed heads to the output in the full model, over the rows of `moments`.

        moments: `fit`, or `all`.
        """
        mean_A = self.fit_mean_A if moments is self.fit else self.mean_A
        gone = torch.ones(len(mean_A), dtype=torch.bool)
        gone[self.places] = False
        return self.projection.weight_OK[:, gone] @ mean_A[gone]

    def without(self, index: int) -> Calibration:
        """The same data with one more head removed."""
        left = [number for number, column in enumerate(self.keep) if column != index]
        inputs = columns(left, self.head_dim)
        keep = tuple(self.keep[number] for number in left)
        return replace(self, fit=self.fit.inputs(inputs), held_out=self.held_out.inputs(inputs), keep=keep)

    def with_intercept(self) -> Calibration:
        """The same data for a projection that gets a bias."""
        return replace(self, intercept=True)

    def origin(self, moments: Moments) -> tuple[Tensor, Tensor]:
        """Origin of deviations: the means of the rows if there is a bias, else 0."""
        return moments.means if self.intercept else (torch.zeros_like(moments.x_K), torch.zeros_like(moments.y_O))

    def normal(self, moments: Moments, of: Moments) -> Normal:
        """The normal equations of a change of the kept heads' weights, about the origin of `of`."""
        xx_KK, xy_KO, _ = moments.about(*self.origin(of))
        return Normal(xx_KK, xy_KO - xx_KK @ self.weight_OK.T)

    def bias_for(self, weight_OK: Tensor, moments: Moments) -> Tensor | None:
        """The bias for which these weights give the mean of the targets; None if the projection has none."""
        if not self.intercept:
            return None
        x_K, y_O = moments.means
        return y_O - weight_OK @ x_K


def columns(heads: tuple[int, ...] | list[int], head_dim: int) -> Tensor:
    """[K]: the columns that belong to these heads."""
    return (torch.tensor(heads, dtype=torch.long)[:, None] * head_dim + torch.arange(head_dim)).flatten()


@dataclass(frozen=True)
class Fit:
    """The new output projection of one site, and how well it does."""

    weight_OK: Tensor
    bias_O: Tensor | None
    rho: float | None  # of |X W - Y|^2 + rho |W - W0|^2 over all rows; None without a ridge
    explained: float  # share of the targets' variance explained on held-out rows; NaN if there are none
    before: float  # the same without compensation


def fitted(
    calibration: Calibration,
    solve: Callable[[Moments], tuple[Tensor, Tensor | None]],
    rho: float | None = None,
) -> Fit:
    """The fit to all rows. Its explained variance is that of a fit to the other rows on held-out rows.

    solve: from moments to weights [O, K] and bias.
    """
    held_out = calibration.held_out
    y_O = held_out.means[1]  # NaN, as is all that follows, if no rows are held out
    total = float(held_out.yy / held_out.count - y_O.square().sum())

    def explained(weight_OK: Tensor, bias_O: Tensor | None) -> float:
        return 1 - held_out.error(weight_OK, bias_O) / total if total > 0 else math.nan

    before = explained(calibration.weight_OK, calibration.bias_O)
    return Fit(*solve(calibration.all), rho, explained(*solve(calibration.fit)), before)


compensations: Registry[Callable[[Calibration], Fit]] = Registry(
    "compensation", "headcount.surgery.compensations", "COMPENSATION"
)
