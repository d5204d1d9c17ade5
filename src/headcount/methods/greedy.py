"""greedy: heads go one after the other, each time those whose compensated removal hurts the loss least. No training.

At every step the model is the pruned one, compensated. A cheap measure names a few candidates: the Fisher information
of a head's mask, times the share of what the head adds that the site's other heads cannot predict. For each candidate
its site is fitted again without it and the loss is measured; the best go, and all sites are fitted anew, bottom-up.
Shapes: B batch, H heads of the model, K = heads of a site that are left x head size, D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from headcount import processes
from headcount.errors import UsageError
from headcount.heads import Head
from headcount.methods.cutting import Cutting, counted_heads, cut_out
from headcount.methods.method import Pruned
from headcount.methods.rank import Step
from headcount.probes.projections import Key, Projection, projected
from headcount.record import Record, Signature
from headcount.scores.gradient import signed_gradients
from headcount.selection.budget import Budget
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site
from headcount.surgery.ascent import Ascent
from headcount.surgery.compensate import spread
from headcount.surgery.compensations.compensation import Calibration, columns, compensations
from headcount.surgery.compensations.ridge import DEFAULT
from headcount.surgery.plan import check_removable
from headcount.surgery.price import Price
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Task

Progress = Callable[[str, int, int], None]  # part, done, of
CANDIDATES = 6  # at every step; the cheap measure need only rank the best head among so many


@dataclass(frozen=True)
class Taken:
    """One step: the heads that went, and the mean loss of an example after each candidate's removal alone."""

    heads: tuple[Head, ...]
    losses: Mapping[Head, float]

    def to_plain(self) -> dict[str, Any]:
        return {
            "removed": [str(head) for head in self.heads],
            "losses": {str(head): loss for head, loss in self.losses.items()},
        }


class Search:
    """Takes heads away from one model, over one set of data."""

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        *,
        kinds: Sequence[str] | None = None,
        compensate: str = "lstsq",
        add_bias: bool = False,
        candidates: int = CANDIDATES,
        gone: Sequence[Head] = (),
    ) -> None:
        """gone: heads that an earlier search has taken, in any order."""
        self._model, self._task, self._fit = model, task, compensations[compensate]
        self._add_bias, self._candidates = add_bias, candidates
        sites = [site for site in locate(model) if site.num_heads and (kinds is None or site.kind in kinds)]
        for site in sites:
            check_removable(model, site)
        self._sites = {site.key: site for site in sites}
        self.mask = locate(model).mask().replace(dict.fromkeys(gone, 0))

    def steps(self, sizes: Sequence[int], *, at_least: int = 0) -> Iterator[Taken]:
        """Take so many heads away at each step; every site keeps `at_least`."""
        with torch.no_grad(), Ascent(self._model, self._task, keys=list(self._sites)) as ascent:
            for size in sizes:
                seen = self._climb(ascent)
                found = self._screen(seen, at_least)
                if not found:
                    return
                checked = found[: max(self._candidates, 2 * size if size > 1 else 1)]
                losses = {head: self._loss(self._without(seen, head)) for head in checked}
                heads = self._best(losses, size, at_least)
                self.mask = self.mask.replace(dict.fromkeys(heads, 0))
                yield Taken(heads, losses)

    def _best(self, losses: Mapping[Head, float], size: int, at_least: int) -> tuple[Head, ...]:
        """The candidates that hurt least, as many as a step takes and their sites can spare."""
        chosen: list[Head] = []
        for head in sorted(losses, key=losses.__getitem__):
            gone = sum(other.site == head.site for other in chosen)
            if len(chosen) < size and self._left(head.site) - gone > at_least:
                chosen.append(head)
        return tuple(chosen)

    def _left(self, key: Key) -> int:
        return sum(bool(self.mask[head]) for head in self._sites[key].head_names())

    def _climb(self, ascent: Ascent) -> dict[Key, tuple[Calibration, Projection | None]]:
        """Fit the sites that lost heads, bottom-up; what calibration rows say about every site."""
        ascent.restart()
        projections: dict[Key, Projection] = {}
        found: dict[Key, tuple[Calibration, Projection | None]] = {}
        for site in ascent.sites:
            keep = [place for place, head in enumerate(site.head_names()) if self.mask[head]]
            intercept = site.output.bias is not None or (self._add_bias and len(keep) < site.num_heads)
            calibration = ascent.calibrate(site, keep, projections, intercept=intercept)
            if len(keep) < site.num_heads:
                projections[site.key] = spread(calibration, self._fit(calibration))
            found[site.key] = calibration, projections.get(site.key)
        return found

    def _screen(self, seen: Mapping[Key, tuple[Calibration, Projection | None]], at_least: int) -> list[Head]:
        """The heads that are left, those first that seem to matter least once they are made up for."""
        current = {key: projection for key, (_, projection) in seen.items() if projection is not None}
        squares_H, heads = np.zeros(len(self.mask)), locate(self._model).heads
        with torch.enable_grad(), evaluating(self._model, gradients=True), projected(self._model, current):
            for batch in self._batches():
                squares_H += np.square(signed_gradients(self._model, self._task, batch)).sum(0)
        fisher = dict(zip(heads, sum(processes.gather(squares_H)), strict=True))  # type: ignore[arg-type]
        cost: dict[Head, float] = {}
        for key, (calibration, projection) in seen.items():
            names = self._sites[key].head_names()
            if len(calibration.keep) <= at_least:
                continue
            for place, share in zip(calibration.keep, unpredicted(calibration, projection), strict=True):
                cost[names[place]] = float(fisher[names[place]]) * share
        return sorted(cost, key=cost.__getitem__)

    def _without(self, seen: Mapping[Key, tuple[Calibration, Projection | None]], head: Head) -> dict[Key, Projection]:
        """The projections with one more head gone, its site fitted again."""
        calibration, _ = seen[head.site]
        site: Site = self._sites[head.site]
        less = calibration.without(site.head_names().index(head))
        if self._add_bias and not less.intercept:
            less = less.with_intercept()
        others = {key: projection for key, (_, projection) in seen.items() if projection is not None}
        return {**others, head.site: spread(less, self._fit(less))}

    def _loss(self, projections: Mapping[Key, Projection]) -> float:
        """Mean negative log-likelihood of an example."""
        total, count = 0.0, 0
        with evaluating(self._model), projected(self._model, projections):
            for batch in self._batches():
                nll_B = self._task.nll(self._model, batch)
                total, count = total + float(nll_B.double().sum()), count + len(nll_B)
        parts = processes.gather((total, count))
        return sum(loss for loss, _ in parts) / sum(number for _, number in parts)

    def _batches(self) -> Iterator[Any]:
        for number, batch in enumerate(self._task.batches()):
            if number % processes.count() == processes.rank():
                yield batch


def unpredicted(calibration: Calibration, projection: Projection | None) -> list[float]:
    """For each head that is left, the share of what it adds to the output that the others cannot predict linearly.

    The covariance of a head given the others is the inverse of its block of the inverse covariance.
    """
    moments = calibration.all
    covariance_KK, _, _ = moments.about(*calibration.origin(moments))
    unit = covariance_KK.diagonal().mean().clamp_min(1e-30)
    covariance_KK = covariance_KK + DEFAULT * unit * torch.eye(len(covariance_KK)).to(covariance_KK)
    inverse_KK = torch.cholesky_inverse(torch.linalg.cholesky(covariance_KK))
    weight = calibration.weight_OK if projection is None else projection.weight_OK[:, calibration.places]
    shares = []
    for place in range(len(calibration.keep)):
        own = columns([place], calibration.head_dim)
        gram_DD = weight[:, own].T @ weight[:, own]
        alone_DD, given_DD = covariance_KK[own][:, own], torch.linalg.inv(inverse_KK[own][:, own])
        shares.append(float((given_DD * gram_DD).sum() / (alone_DD * gram_DD).sum().clamp_min(1e-30)))
    return shares


def prune_greedily(
    model: nn.Module,
    task: Task,
    *,
    budget: Budget,
    kinds: Sequence[str] | None = None,
    at_least: int = 0,
    group: int = 1,
    candidates: int = CANDIDATES,
    compensate: str = "lstsq",
    add_bias: bool = False,
    calibrate_on: Task | None = None,
    measure_on: Task | None = None,
    verify: bool = True,
    inplace: bool = False,
    length: int = 128,
    progress: Progress = lambda *_: None,
) -> Pruned:
    """Take heads away until the budget is met, with compensation in the loop, and remove them.

    group: heads that go at each step. candidates: heads whose removal is measured at each step.
    compensate: what is in the loop, and at the end. calibrate_on: the data to fit and to search on, if not `task`.
    """
    if group < 1 or candidates < 1:
        raise UsageError(f"group and candidates are at least 1; got {group} and {candidates}.")
    if not isinstance(budget, Budget):
        raise UsageError("The method greedy needs a budget: one number or share, for all kinds together.")
    counted, data = counted_heads(model, kinds), calibrate_on or task
    elsewhere, weights = measure_on or task, weight_hash(model)
    before = elsewhere.quality(model)
    options: dict[str, Any] = {"compensate": compensate, "add_bias": add_bias, "candidates": candidates}
    search = Search(model, data, kinds=kinds, **options)
    taken = list(_until(search, model, budget, counted, group, at_least, length, progress))
    mask = search.mask
    cutting = Cutting(compensate, add_bias, verify=verify, inplace=inplace, length=length)
    small, done = cut_out(model, mask, data, cutting, progress=progress)
    after = Step(sum(not mask[head] for head in counted), mask, elsewhere.quality(small))
    steps = [Step(0, mask.map(lambda _: 1), before), after]
    parts = {
        "method": "greedy",
        "metric": before.metric.name,
        "measured_on": measured_on([data], elsewhere),
        "curve": [step.to_plain(kinds or mask.kinds) for step in steps],
        "steps": [step.to_plain() for step in taken],
        **done,
    }
    arguments = {"kinds": kinds, "at_least": at_least, "group": group, **options}
    return Pruned(small, mask, Record("prune", Signature("", weights, task.fingerprint, arguments=arguments), parts))


def _until(
    search: Search,
    model: nn.Module,
    budget: Budget,
    counted: Sequence[Head],
    group: int,
    at_least: int,
    length: int,
    progress: Progress,
) -> Iterator[Taken]:
    """Steps until the budget is met: a number of heads, or what the model costs after a step."""
    price = None if budget.counts == "heads" else Price(model, budget.counts, length=length)
    gone = len(counted) - budget.of(len(counted)) if price is None else len(counted)
    limit = price.limit(budget) if price is not None else 0.0
    if (price is not None and price(search.mask) <= limit) or not gone:
        return
    sizes = [min(group, gone - start) for start in range(0, gone, group)]
    done = 0
    for taken in search.steps(sizes, at_least=at_least):
        done += len(taken.heads)
        progress("taking heads away", done, gone)
        yield taken
        if price is not None and price(search.mask) <= limit:
            return
    if price is not None or done < gone:
        raise UsageError(
            f"Only {done} of {len(counted)} heads could go, every layer keeping {at_least}: the budget cannot be met."
        )


prune_greedily.any_budget = True  # type: ignore[attr-defined]
METHOD = prune_greedily
