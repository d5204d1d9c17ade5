"""Greedy search: remove heads one after the other, each time those whose compensated removal costs least.

Every step starts from the pruned and compensated model. A cheap score proposes a few candidates: the Fisher information
of a head's mask, times the share of its contribution that the site's other heads cannot predict. For each candidate,
its site is fitted again without it and the loss is measured; the best are removed, and all sites are fitted again.
Shapes: B batch, H heads of the model, K = remaining heads of a site x head size, D head size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from headcount import processes
from headcount.heads import Head
from headcount.probes.projections import Projection, projected
from headcount.probes.runs import check_running
from headcount.record.results.prune import SearchStep
from headcount.scores.gradient import signed_gradients
from headcount.selection.select import counted_layers
from headcount.selection.shape import FREE, Shape
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site, SiteKey
from headcount.surgery.ascent import Ascent
from headcount.surgery.compensate import spread
from headcount.surgery.compensations.compensation import Calibration, columns, compensations
from headcount.surgery.compensations.ridge import DEFAULT
from headcount.surgery.plan import check_removable
from headcount.tasks.task import Task

Fits = Mapping[SiteKey, tuple[Calibration, Projection | None]]  # None: the site has all its heads


@dataclass(frozen=True)
class Taken:
    """One step: the removed heads, and the mean loss of an example without each candidate."""

    heads: tuple[Head, ...]
    losses: Mapping[Head, float]

    def to_result(self, seconds: float) -> SearchStep:
        """The step as stored in a record. seconds: duration of the step."""
        losses = {str(head): loss for head, loss in self.losses.items()}
        return SearchStep(tuple(map(str, self.heads)), losses, seconds)


class Search:
    """A search on one model and one data set."""

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        *,
        kinds: Sequence[str] | None = None,
        compensate: str = "lstsq",
        add_bias: bool = False,
        candidates: int,
        shape: Shape = FREE,
        keep: int | None = None,
    ) -> None:
        """shape: constraints on the final heads. keep: final number of heads, if known."""
        self._model, self._task, self._fit = model, task, compensations[compensate]
        self._add_bias, self._candidates = add_bias, candidates
        sites = [site for site in locate(model) if site.num_heads and (kinds is None or site.kind in kinds)]
        for site in sites:
            check_removable(model, site)
        check_running(model, task.batches(), task.nll, kinds)
        self._sites = {site.key: site for site in sites}
        self.mask = locate(model).mask()
        groups = [group for group in locate(model).groups if group[0].site in self._sites]
        units = groups if shape.unit == "group" else [(head,) for group in groups for head in group]
        self._units = {unit[0]: tuple(unit) for unit in units}  # heads that are removed together, by the first of them
        self._layers, self._keep = counted_layers(groups, None, shape), keep

    def take(self, heads: Sequence[Head]) -> None:
        """Continue without these heads, which an earlier search removed."""
        self.mask = self.mask.replace(dict.fromkeys(heads, 0))

    @property
    def shaped(self) -> bool:
        """Whether the remaining heads have the shape."""
        return not self._layers.shape.violations(self.mask, self._layers.groups)

    def step_size(self, size: int) -> int:
        """Number of heads that a step of this size removes: fewer at the end."""
        return size if self._keep is None else min(size, len(self._remaining) - self._keep)

    def is_step(self, heads: Sequence[Head], size: int) -> bool:
        """Whether a step of this size may remove this many heads; the last unit may exceed the size."""
        last = [unit for unit in self._units.values() if heads and heads[-1] in unit]
        return bool(last) and len(heads) - len(last[0]) < self.step_size(size) <= len(heads)

    @property
    def _remaining(self) -> set[Head]:
        return {head for group in self._layers.groups for head in group if self.mask[head]}

    def steps(self, sizes: Sequence[int]) -> Iterator[Taken]:
        """Remove this many heads at each step."""
        with torch.no_grad(), Ascent(self._model, self._task, keys=list(self._sites)) as ascent:
            for size in sizes:
                fits = self._climb(ascent)
                candidates = self._screen(fits)
                if not candidates:
                    return
                checked = candidates[: max(self._candidates, 2 * size if size > 1 else 1)]
                losses = {head: self._loss(self._without(fits, self._units[head])) for head in checked}
                heads = self._best(losses, self.step_size(size))
                self.take(heads)
                yield Taken(heads, losses)

    def _best(self, losses: Mapping[Head, float], size: int) -> tuple[Head, ...]:
        """The candidates with the lowest loss, as many as a step removes."""
        best: list[Head] = []
        for head in sorted(losses, key=losses.__getitem__):
            if len(best) < size and self._can_go({*best, *self._units[head]}):
                best += self._units[head]
        return tuple(best)

    def _can_go(self, heads: set[Head]) -> bool:
        """Whether the shape and the number of heads can still be reached without these heads."""
        return self._layers.shape.free or self._layers.reaches(self._remaining - heads, self._keep)

    def _climb(self, ascent: Ascent) -> Fits:
        """Fit the sites that lost heads, from the lowest; returns the calibration data of every site."""
        ascent.restart()
        projections: dict[SiteKey, Projection] = {}
        fits: dict[SiteKey, tuple[Calibration, Projection | None]] = {}
        for site in ascent.sites:
            keep = [index for index, head in enumerate(site.head_names()) if self.mask[head]]
            intercept = site.output.bias is not None or (self._add_bias and len(keep) < site.num_heads)
            calibration = ascent.calibrate(site, keep, projections, intercept=intercept)
            if len(keep) < site.num_heads:
                projections[site.key] = spread(calibration, self._fit(calibration))
            fits[site.key] = calibration, projections.get(site.key)
        return fits

    def _screen(self, fits: Fits) -> list[Head]:
        """The units that can be removed, those with the lowest cheap score first."""
        current = _projections(fits)
        squares_H, heads = np.zeros(len(self.mask)), locate(self._model).heads
        with torch.enable_grad(), evaluating(self._model, gradients=True), projected(self._model, current):
            for batch in processes.mine(self._task.batches()):
                squares_H += np.square(signed_gradients(self._model, self._task, batch)).sum(0)
        fisher = dict(zip(heads, sum(processes.gather(squares_H)), strict=True))  # type: ignore[arg-type]
        cost: dict[Head, float] = {}
        for key, (calibration, projection) in fits.items():
            names = self._sites[key].head_names()
            for index, share in zip(calibration.keep, unpredicted(calibration, projection), strict=True):
                cost[names[index]] = float(fisher[names[index]]) * share
        unit_costs = {
            head: sum(cost[member] for member in unit)
            for head, unit in self._units.items()
            if head in cost and self._can_go(set(unit))
        }
        return sorted(unit_costs, key=unit_costs.__getitem__)

    def _without(self, fits: Fits, unit: Sequence[Head]) -> dict[SiteKey, Projection]:
        """The projections without one more unit, with its site fitted again."""
        key = unit[0].site
        less, _ = fits[key]
        site: Site = self._sites[key]
        for head in unit:
            less = less.without(site.head_names().index(head))
        if self._add_bias and not less.intercept:
            less = less.with_intercept()
        return {**_projections(fits), key: spread(less, self._fit(less))}

    def _loss(self, projections: Mapping[SiteKey, Projection]) -> float:
        """Mean negative log-likelihood of an example."""
        total, count = 0.0, 0
        with evaluating(self._model), projected(self._model, projections):
            for batch in processes.mine(self._task.batches()):
                nll_B = self._task.nll(self._model, batch)
                total, count = total + float(nll_B.double().sum()), count + len(nll_B)
        parts = processes.gather((total, count))
        return sum(loss for loss, _ in parts) / sum(number for _, number in parts)


def _projections(fits: Fits) -> dict[SiteKey, Projection]:
    return {key: projection for key, (_, projection) in fits.items() if projection is not None}


def unpredicted(calibration: Calibration, projection: Projection | None) -> list[float]:
    """Share of each remaining head's contribution to the output that the others cannot predict linearly.

    The covariance of a head given the others is the inverse of its block of the inverse covariance.
    """
    moments = calibration.all
    covariance_KK, _, _ = moments.about(*calibration.origin(moments))
    unit = covariance_KK.diagonal().mean().clamp_min(1e-30)
    covariance_KK = covariance_KK + DEFAULT * unit * torch.eye(len(covariance_KK)).to(covariance_KK)
    inverse_KK = torch.cholesky_inverse(torch.linalg.cholesky(covariance_KK))
    weight = calibration.weight_OK if projection is None else projection.weight_OK[:, calibration.places]
    shares = []
    for index in range(len(calibration.keep)):
        block = columns([index], calibration.head_dim)
        gram_DD = weight[:, block].T @ weight[:, block]
        alone_DD, given_DD = covariance_KK[block][:, block], torch.linalg.inv(inverse_KK[block][:, block])
        shares.append(float((given_DD * gram_DD).sum() / (alone_DD * gram_DD).sum().clamp_min(1e-30)))
    return shares
