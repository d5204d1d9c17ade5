"""Pruning curves (Michel et al. 2019, section 4): quality as heads go, by several orders, of all kinds and of each.

Controls: heads in random order, several times; and, by request, in the order of what is lost without each alone.
Shapes: K random orders, N examples, C columns of statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from headcount.errors import UsageError
from headcount.progress import Progress, named, silent
from headcount.pruning.ranking import Order, Restrictions, Step, counts_to, curve
from headcount.record import Record, Signature
from headcount.scores.score import members
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import Runs, bootstrap_sums, over_runs
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Quality, Task


@dataclass(frozen=True)
class Plan:
    """Which curves are drawn."""

    orders: tuple[str, ...] = ("gradient", "ablation")
    random: int = 5  # random orders
    step: float = 0.1  # share of the heads that go at a time
    upto: float = 1.0  # share of the heads that go in all
    by_kind: bool = True  # also each kind alone, by the first order
    recompute: bool = False  # score again after each step

    def __post_init__(self) -> None:
        for order in self.orders:
            members[order]  # raises for a name that is none
        if not self.orders or self.random < 0 or not 0 < self.upto <= 1:
            raise UsageError(
                "A plan has at least one order, 0 or more random ones, and prunes a share above 0 and up to 1; "
                f"got {len(self.orders)}, {self.random}, {self.upto}."
            )


@dataclass(frozen=True)
class _Curve:
    """One line: how heads were ordered, which kinds might go, and the model after each step."""

    order: str
    kinds: tuple[str, ...]
    steps: list[Step]
    seed: int | None = None

    def to_plain(self) -> dict[str, Any]:
        points = [step.to_plain(self.kinds) for step in self.steps]
        return {"order": self.order, "kinds": list(self.kinds), "seed": self.seed, "points": points}


def pruning_curves(
    model: nn.Module,
    task: Task,
    *,
    measure_on: Task | None = None,
    plan: Plan | None = None,
    name: str = "",
    progress: Progress = silent,
) -> Record:
    """Scores are taken on `task`, quality is measured on `measure_on`; without it on `task`, and the record says so."""
    plan, where = plan or Plan(), measure_on or task
    kinds = tuple(locate(model).kinds)
    found = list(_curves(model, task, where, plan, kinds, progress))
    first = found[0].steps[0].quality
    parts: dict[str, Any] = {
        "metric": first.metric.name,
        "higher_is_better": first.metric.higher_is_better,
        "value": first.value,
        "measured_on": measured_on([task], where),
        "heads": len(locate(model).heads),
        "curves": [line.to_plain() for line in found if line.kinds == kinds],
        "against_random": _against_random(found, kinds),
        "claims": _claims(found, kinds),
    }
    if plan.by_kind and len(kinds) > 1:
        parts["by_kind"] = [line.to_plain() for line in found if line.kinds != kinds]
    arguments = {"orders": list(plan.orders), "step": plan.step, "recompute": plan.recompute, "random": plan.random}
    arguments |= {"measured_on": where.fingerprint}
    signature = Signature(name, weight_hash(model), task.fingerprint, arguments=arguments)
    return Record("pruning curves", signature, parts)


def _curves(
    model: nn.Module, task: Task, where: Task, plan: Plan, kinds: tuple[str, ...], progress: Progress
) -> Iterator[_Curve]:
    def line(order: Order, some: tuple[str, ...], seed: int | None = None) -> _Curve:
        total = sum(head.kind in some for head in locate(model).heads)
        counts = counts_to(total, round(plan.upto * total), plan.step)
        said = " ".join([order.score, *(some if some != kinds else ()), *([] if seed is None else [f"#{seed + 1}"])])
        steps = curve(
            model,
            task,
            order,
            counts,
            measure_on=where,
            restrictions=Restrictions(some),
            progress=named(f"pruning by {said}", progress),
        )
        return _Curve(order.score, some, list(steps), seed)

    for name in plan.orders:
        yield line(Order(name, plan.recompute), kinds)
    for seed in range(plan.random):
        yield line(Order("random", options=(("seed", seed),)), kinds, seed)
    if plan.by_kind and len(kinds) > 1:
        for kind in kinds:
            yield line(Order(plan.orders[0], plan.recompute), (kind,))


def _against_random(found: Sequence[_Curve], kinds: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """How much better than the mean of the random orders each other order is after each step; none without them."""
    random = [line for line in found if line.order == "random"]
    if not random:
        return {}
    named = [line for line in found if line.order != "random" and line.kinds == kinds]
    return {line.order: [_gain(line, random, place) for place in range(len(line.steps))] for line in named}


def _gain(line: _Curve, random: Sequence[_Curve], place: int) -> dict[str, Any]:
    """The mean gain over random orders; which orders were drawn is in its interval, with the examples."""
    ours = line.steps[place]
    theirs = [other.steps[place].quality for other in random]
    gain = gain_over([ours.quality, *theirs])
    beaten = sum(ours.quality.metric.gain(ours.quality.value - quality.value) > 0 for quality in theirs)
    return {
        "share": ours.removed / len(ours.mask),
        "value": gain.value,
        "low": gain.low,
        "high": gain.high,
        "variance": gain.parts,
        "beaten": beaten,
        "random": len(theirs),
    }


def gain_over(qualities: Sequence[Quality]) -> Runs:
    """How much better the first is than each of the others, on average, with the others as seeds."""
    metric = qualities[0].metric
    sign = 1 if metric.higher_is_better else -1
    table = np.stack([quality.statistics for quality in qualities], axis=1)  # [N, 1 + K, C]

    def gains(sums: np.ndarray) -> np.ndarray:
        """[..., 1 + K, C] -> [..., K], positive where the first is better."""
        values = metric.of_sums(sums)
        return np.asarray(sign * (values[..., :1] - values[..., 1:]))

    drawn_RK = np.concatenate([gains(sums) for sums in bootstrap_sums(table, resamples=1000)])
    return over_runs([gains(table.sum(0)).tolist()], [list(drawn_RK.T)])


def _claims(found: Sequence[_Curve], kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """What the paper says of these curves, and whether it holds here."""
    claims: list[dict[str, Any]] = []
    against = _against_random(found, kinds)
    for order, points in against.items():
        middle = [point for point in points if 0.2 - 1e-9 <= round(point["share"], 1) <= 0.6 + 1e-9]
        claims.append(
            {
                "claim": f"{order} is better than random order at every step from 20% to 60%",
                "holds": all(point["value"] > 0 for point in middle) if middle else None,
                "significant": all(point["low"] > 0 for point in middle) if middle else None,
                "evidence": [{name: point[name] for name in ("share", "value", "low", "high")} for point in middle],
            }
        )
    alone = {line.kinds[0]: line for line in found if len(line.kinds) == 1 and len(kinds) > 1}
    if "cross" in alone:
        lost = {kind: _lost_beyond(line, 0.6) for kind, line in alone.items()}
        known = {kind: value for kind, value in lost.items() if value is not None}
        claims.append(
            {
                "claim": "cross attention is the kind that suffers most when more than 60% of its heads go",
                "holds": max(known, key=lambda kind: known[kind]) == "cross" if len(known) == len(lost) else None,
                "evidence": lost,
            }
        )
    return claims


def _lost_beyond(line: _Curve, share: float) -> float | None:
    """Mean loss of the metric over the steps at which more than this share of the kind is gone; None without any."""
    total = sum(head.kind in line.kinds for head in line.steps[0].mask.heads)
    values = [step.quality for step in line.steps if step.removed > share * total]
    if not values:
        return None
    metric = values[0].metric
    return float(np.mean([-metric.gain(quality.value - line.steps[0].quality.value) for quality in values]))
