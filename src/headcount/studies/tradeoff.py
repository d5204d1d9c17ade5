"""The trade-off (Voita et al. 2019, section 6): quality against the heads left, by several ways of choosing them.

Every way that trains gets the same number of steps: a rank is fine-tuned for as many as gates and fine-tuning together.
The same command again goes on in its folder, and processes begun alike share the points.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount import journal, processes
from headcount.heads import Head
from headcount.metrics import Metric
from headcount.probes.gated import VARIANTS
from headcount.progress import Progress, silent
from headcount.pruning.run import counted_heads, described, without_statistics
from headcount.pruning.way import SCRATCH, Way
from headcount.record import Record, Signature
from headcount.selection.budget import Budget
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import paired_bootstrap
from headcount.studies.kept import Held, Looking, drift
from headcount.studies.plan import Arm
from headcount.studies.plan import Data as Data
from headcount.studies.plan import Plan as Plan
from headcount.studies.point import COMMAND, Work, point
from headcount.studies.point import Models as Models
from headcount.tasks.overlap import check_apart, measured_on

_RESAMPLES = 1000
_FIGURE_6 = (0.0, 2.0, -3.0)  # log_a of the distributions that the paper draws


def tradeoff(
    model: nn.Module,
    data: Data,
    plan: Plan,
    *,
    name: str = "",
    looking: Looking | None = None,
    unlooked: str = "there were no sentences to look at",
    folder: Path | None = None,
    models: Models | None = None,
    command: tuple[str, str] = COMMAND,
    progress: Progress = silent,
) -> Record:
    """Measure every point of the plan, and compare the ways, paired on the same examples.

    looking: sentences to find out on what the heads that are left do; unlooked: why there are none.
    models: where the smaller models are kept. command: what makes a point, around the arguments of its pipeline.
    """
    gated = _gated(model, plan)
    check_apart(data.train, data.measure)
    with tempfile.TemporaryDirectory() if folder is None else nullcontext(str(folder)) as folder_name:
        shared_folder = Path(processes.gather(folder_name)[0])  # of several processes the first one's
        journal.claim(shared_folder, "work.json", _identity(model, data, plan))
        if plan.distilled:
            journal.claim(shared_folder, "distilled.json", {"distill": plan.distill})
        if SCRATCH in plan.ways:  # its points have the heads of another way
            journal.claim(shared_folder, "scratch.json", {"donor": plan.donor_way.name})
        quality = data.measuring.quality(model)
        whole_roles = looking.roles(model) if looking else None  # what cannot be looked at is said before training
        points = _points(Work(model, data, plan, shared_folder, looking, models, command), plan.arms(gated), progress)
        processes.gather(None)  # a folder that is not to stay goes when all are done with it
    heads = locate(model).heads
    kinds = tuple(kind for kind in locate(model).kinds if plan.kinds is None or kind in plan.kinds)
    parts: dict[str, Any] = {
        "metric": quality.metric.name,
        "measured_on": measured_on([data.training, data.choosing], data.measuring),
        "whole": without_statistics(described(quality)),
        "gated": gated,
        "of": dict(Counter(head.kind for head in heads)),
        "sites": {site.name: site.num_heads for site in locate(model)},
        "pruned": "heads of all kinds"
        if 1 < len(kinds) == len(locate(model).kinds)
        else f"{' and '.join(kinds)} heads",
        "tradeoff": [_short(row) for row in points],
        "against": plan.against,
        "compared": _compared(points, plan, quality.metric, quality.statistics, gated),
        "steps": {"trained and tuned": plan.steps, "scratch": plan.scratch_steps},
        "missing": len(plan.arms(gated)) - len(points),
    }
    if plan.distilled:
        parts["distill"] = plan.distill
    parts |= _spent(points) | _gates(plan) | _roles(whole_roles, looking, unlooked, points)
    if 1 < len(kinds) == len(locate(model).kinds):
        parts["all_kinds"] = _all_kinds([point_row for point_row in points if point_row["keep"] < gated], plan)
    return Record(
        "tradeoff", Signature(name, weight_hash(model), data.measuring.fingerprint, None, asdict(plan)), parts
    )


def _identity(model: nn.Module, data: Data, plan: Plan) -> dict[str, Any]:
    """What every point depends on, whichever points are asked for."""
    free = ("keep", "ways", "seeds", "against", "distill")
    settings = {name: value for name, value in asdict(plan).items() if name not in free}
    del settings["tuning"]["distill"]  # 0: it is the plan's
    prints = {name: getattr(data, name).fingerprint for name in ("train", "choose", "measure")}
    metric = getattr(data.measure, "metric", None)
    measuring = {"metric": metric.name if metric else None, **getattr(data.measure, "identity", {})}
    return {"weights": weight_hash(model), **prints, "measured": measuring, **settings}


def _points(work: Work, arms: Sequence[Arm], progress: Progress) -> list[dict[str, Any]]:
    """One at a time, those that other processes are at left out."""
    by_name: dict[str, dict[str, Any]] = {}
    for _ in range(2):  # whoever is done last finds what others were at
        for arm in [arm for arm in arms if arm.name not in by_name]:
            progress("points of the trade-off", len(by_name), len(arms))
            row = point(work, arm)
            if row is not None:
                by_name[arm.name] = row
    progress("points of the trade-off", len(by_name), len(arms))
    return [by_name[arm.name] for arm in arms if arm.name in by_name]


def _spent(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """way -> seconds of one of its points, the mean; points made before seconds were kept have none."""
    by_way: dict[str, list[float]] = {}
    for row in points:
        if "seconds" in row:
            by_way.setdefault(row["way"], []).append(row["seconds"]["total"])
    return {"seconds": {way: float(np.mean(seconds)) for way, seconds in by_way.items()}} if by_way else {}


def _gates(plan: Plan) -> dict[str, Any]:
    """The distributions of the paper's Figure 6, as gates have them here and with the paper's beta."""
    if not any(way.chooser is not None and way.chooser.name == "l0" for way in map(Way.parse, plan.ways)):
        return {}
    shapes = [VARIANTS[variant].shape for variant in ("default", "paper")]
    return {"hard_concrete": [shape.described(log_a) for shape in shapes for log_a in _FIGURE_6]}


def _roles(
    roles_before: Held | None, looking: Looking | None, unlooked: str, points: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """What all heads do in the whole model, and what became of it in every smaller one."""
    if looking is None or roles_before is None:
        return {"lacking": {"whole_roles": unlooked}}
    rows = [
        {**{name: row[name] for name in ("way", "keep", "seed")}, **drift(roles_before, row["roles"])} for row in points
    ]
    return {"whole_roles": roles_before, "looked": looking.described(), "drift": rows}


def _all_kinds(points: Sequence[dict[str, Any]], plan: Plan) -> list[dict[str, Any]]:
    """Models by the heads of each kind they have, beside those trained from scratch with the same (Table 2)."""
    scratch = {(point_row["keep"], point_row["seed"]): point_row for point_row in points if point_row["way"] == SCRATCH}
    donor = plan.donor_way
    rows = []
    for point_row in points:
        if point_row["way"] != donor.name:
            continue
        # what no seed changes was measured once, and gave its heads to the models of all seeds
        for seed in plan.seeds if donor.steady and SCRATCH in plan.ways else (point_row["seed"],):
            control = scratch.get((point_row["keep"], seed))
            rows.append(
                {
                    **{name: point_row[name] for name in ("way", "keep")},
                    "seed": seed,
                    "kept": _kept(point_row["heads"]),
                    "trained": without_statistics(point_row["after"]),
                    "scratch": without_statistics(control["after"]) if control else None,
                }
            )
    return sorted(rows, key=lambda row: -row["keep"])


def _kept(heads: Sequence[str]) -> dict[str, int]:
    return dict(Counter(Head.parse(name).kind for name in heads))


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """Without what each example adds: reports do not need it."""
    short = without_statistics(row)
    for part in ("cut", "after"):
        if isinstance(short.get(part), dict):
            short[part] = without_statistics(short[part])
    if "heads" in short:
        short["kept"] = _kept(short["heads"])
    return short


def _gated(model: nn.Module, plan: Plan) -> int:
    """Heads that may go; a plan that keeps more than there are is an error before anything is run."""
    gated = len(counted_heads(model, plan.kinds))
    Budget(heads=max(plan.keep)).of(gated)
    if gated in plan.keep:
        plan.check_control(gated)
    return gated


def _compared(
    points: Sequence[dict[str, Any]], plan: Plan, metric: Metric, base: np.ndarray, gated: int
) -> list[dict[str, Any]]:
    """Each way at its end against the whole model, and against another way with as many heads: all seeds.

    Where the other way was also measured with all heads, which is fine-tuning alone, also against that: `lost_tuned`.
    """
    comparisons, tuned = [], _statistics(points, plan, plan.against, gated)
    for keep in plan.keep:
        theirs = _statistics(points, plan, plan.against, keep)
        for way in plan.ways:
            ours = _statistics(points, plan, way, keep)
            if not ours:
                continue
            seeds = sorted(
                point_row["seed"] for point_row in points if (point_row["way"], point_row["keep"]) == (way, keep)
            )
            row: dict[str, Any] = {"way": way, "keep": keep, "seeds": seeds}
            row["lost"] = _difference(dict.fromkeys(seeds, base), ours, metric)
            shared = sorted(set(ours) & set(tuned))
            if keep < gated and shared:
                row["lost_tuned"] = _difference({seed: tuned[seed] for seed in shared}, ours, metric)
            both = sorted(set(ours) & set(theirs))
            if way != plan.against and both:
                row["against"] = _difference({seed: theirs[seed] for seed in both}, ours, metric)
            comparisons.append(row)
    return comparisons


def _statistics(points: Sequence[dict[str, Any]], plan: Plan, way: str, keep: int) -> dict[int, np.ndarray]:
    """By seed; what no seed changes is the same for all of them."""
    by_seed = {
        row["seed"]: np.array(row["after"]["statistics"]) for row in points if row["way"] == way and row["keep"] == keep
    }
    if by_seed and Way.parse(way).steady:
        return dict.fromkeys(plan.seeds, next(iter(by_seed.values())))
    return by_seed


def _difference(before: dict[int, np.ndarray], after: dict[int, np.ndarray], metric: Metric) -> dict[str, Any]:
    """Second minus first, the mean over seeds, with the paired interval over examples; and that of each seed."""
    seeds = sorted(before)
    left, other = (np.stack([by_seed[seed] for seed in seeds], axis=1) for by_seed in (before, after))  # [N, seeds, C]

    def mean(sums: np.ndarray) -> np.ndarray:
        """[..., seeds * C] -> [...]."""
        values: np.ndarray = metric.of_sums(sums.reshape(*sums.shape[:-1], *left.shape[1:])).mean(-1)
        return values

    flat = (len(left), -1)
    (comparison,) = paired_bootstrap(left.reshape(flat), other.reshape(flat)[None], mean, resamples=_RESAMPLES)
    differences = metric.of_sums(other.sum(0)) - metric.of_sums(left.sum(0))
    return {**comparison._asdict(), "by_seed": dict(zip(map(str, seeds), differences.tolist(), strict=True))}
