"""The trade-off (Voita et al. 2019, section 6): quality against remaining heads, for several ways of choosing them.

Every way that trains but scratch gets the same number of steps: a ranking is fine-tuned for as many as gates and
fine-tuning together. The same command resumes in its folder, and processes of the same command share the points.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount import journal, processes
from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.metrics import Metric
from headcount.probes.gated import VARIANTS
from headcount.progress import Progress, silent
from headcount.pruning.run import counted_heads, measured_quality
from headcount.pruning.way import SCRATCH, Way
from headcount.record import Record, Signature
from headcount.record.codec import encode
from headcount.record.model_folder import training_record
from headcount.record.results.prune import HardConcrete
from headcount.record.results.tradeoff import Difference, Drift, Point, StepsOfWays, Tradeoff, WayCompared, WayKind
from headcount.selection.budget import Budget
from headcount.selection.select import counted_layers
from headcount.sites.fingerprint import config_hash, weight_hash
from headcount.sites.locate import locate
from headcount.statistics import bootstrap_sums, counted, over_runs
from headcount.studies.kept import Held, Looking, drift, held_roles
from headcount.studies.plan import Arm
from headcount.studies.plan import Data as Data
from headcount.studies.plan import Plan as Plan
from headcount.studies.point import COMMAND, PointFile, PointInputs, point
from headcount.studies.point import Models as Models
from headcount.surgery.manifest import json_hash
from headcount.tasks.inputs import claim_inputs
from headcount.tasks.overlap import Identified, check_apart, measured_on
from headcount.tasks.task import token_hash

_RESAMPLES = 1000


def tradeoff(
    model: nn.Module,
    data: Data,
    plan: Plan,
    *,
    name: str = "",
    revision: str | None = None,
    looking: Looking | None = None,
    unlooked: str = "there were no sentences to look at",
    folder: Path | None = None,
    models: Models | None = None,
    command: tuple[str, str] = COMMAND,
    progress: Progress = silent,
) -> Record[Tradeoff]:
    """Measure every point of the plan, and compare the ways, paired on the same examples.

    name, revision: of the model, whose folder or hub id says what its heads were chosen on if it is pruned.
    looking: sentences to measure roles of the remaining heads on. unlooked: reason if there are none.
    models: folder for the pruned models. command: text before and after the arguments of a pipeline.
    """
    gated = _gated(model, plan)
    check_apart(data.train, data.measure)
    with tempfile.TemporaryDirectory() if folder is None else nullcontext(str(folder)) as folder_name:
        shared_folder = Path(processes.gather(folder_name)[0])  # that of the first process
        journal.claim(shared_folder, "work.json", _identity(model, data, plan))
        claim_inputs(shared_folder, model, data.training)
        if plan.distilled:
            journal.claim(shared_folder, "distilled.json", {"distill": plan.distill})
        if SCRATCH in plan.ways:  # its points have the heads of another way
            journal.claim(shared_folder, "scratch.json", {"donor": plan.donor_way.name})
        quality = data.measuring.quality(model)
        whole_evidence = looking.evidence(model) if looking else None  # raises before training if it is not possible
        whole_roles = None if whole_evidence is None else held_roles(whole_evidence)
        chosen_before = read_chosen_on(name, revision)
        inputs = PointInputs(model, data, plan, shared_folder, looking, whole_evidence, models, command, chosen_before)
        files = _points(inputs, plan.arms(gated), progress)
        processes.gather(None)  # a temporary folder is deleted when all processes are done
    heads = locate(model).heads
    kinds = tuple(kind for kind in locate(model).kinds if plan.kinds is None or kind in plan.kinds)
    every_kind = 1 < len(kinds) == len(locate(model).kinds)
    rows = [file.point for file in files]
    parts = Tradeoff(
        metric=quality.metric.name,
        higher_is_better=quality.metric.higher_is_better,
        measured_on=measured_on([*chosen_before, *_seen(data, plan, gated)], data.measuring),
        whole=measured_quality(quality),
        gated=gated,
        of=dict(Counter(head.kind for head in heads)),
        heads_by_site={site.name: site.num_heads for site in locate(model)},
        pruned="heads of all kinds" if every_kind else f"{' and '.join(kinds)} heads",
        points=tuple(rows),
        against=plan.against,
        compared=tuple(_compared(files, plan, quality.metric, quality.statistics, gated)),
        steps=_steps(plan, name),
        unfinished=len(plan.arms(gated)) - len(files),
        seconds_by_way=_spent(rows),
        distill=plan.distill if plan.distilled else None,
        hard_concrete=_gates(plan),
        whole_roles=whole_roles,
        looked=looking.to_result() if looking else None,
        drift=_drift(whole_roles, rows) if whole_roles is not None else None,
        lacking={} if looking else {"whole_roles": unlooked},
        all_kinds=_all_kinds([row for row in rows if row.keep < gated], plan) if every_kind else None,
        whole_heads=tuple(map(str, heads)),
    )
    return Record("tradeoff", signature_of(model, data, plan, name=name, looking=looking, models=models), parts)


def signature_of(
    model: nn.Module, data: Data, plan: Plan, *, name: str, looking: Looking | None, models: Models | None
) -> Signature:
    """The signature of a trade-off, known before any work: a finished record that has it need not be made again."""
    inputs = {
        **_identity(model, data, plan),
        "tokens": token_hash(data.training),
        "configuration": config_hash(model, writes=data.training.writes),
        "sentences": looking.fingerprint if looking else None,
    }
    arguments = {**asdict(plan), "inputs": json_hash(encode(inputs))[:40]} | ({"models": True} if models else {})
    return Signature(name, weight_hash(model), data.measuring.fingerprint, None, arguments)


def _seen(data: Data, plan: Plan, gated: int) -> list[Identified]:
    """Data that heads are chosen, calibrated or trained on by any way, each once, what they are chosen on last."""
    arms = plan.arms(gated)
    pipelines = [plan.pipeline(plan.donor(arm) if arm.way.scratch else arm) for arm in arms]
    trained_on = [data.training] if any(arm.way.scratch for arm in arms) else []
    tasks = [*trained_on, *(task for pipeline in pipelines for task in pipeline.seen(data))]
    return sorted({id(task): task for task in tasks}.values(), key=lambda task: task is data.choosing)


def _steps(plan: Plan, model: str) -> StepsOfWays:
    """model: folder of the whole model, whose record may have its training steps."""
    learned = any(Way.parse(way).learned for way in plan.ways)
    training = training_record(model)
    return StepsOfWays(
        plan.steps, plan.scratch_steps, plan.gate_steps if learned else None, training.parts.steps if training else None
    )


def _identity(model: nn.Module, data: Data, plan: Plan) -> dict[str, Any]:
    """Settings that every point depends on."""
    free = ("keep", "ways", "seeds", "against", "distill")
    settings = {name: value for name, value in asdict(plan).items() if name not in free}
    del settings["tuning"]["distill"]  # 0: the plan has it
    prints = {name: getattr(data, name).fingerprint for name in ("train", "choose", "measure")}
    metric = getattr(data.measure, "metric", None)
    measuring = {"metric": metric.name if metric else None, **getattr(data.measure, "identity", {})}
    return {"weights": weight_hash(model), **prints, "measured": measuring, **settings}


def _points(inputs: PointInputs, arms: Sequence[Arm], progress: Progress) -> list[PointFile]:
    """All points, one at a time, without those that other processes work on."""
    by_name: dict[str, PointFile] = {}
    for _ in range(2):  # the second round collects what other processes finished meanwhile
        for arm in [arm for arm in arms if arm.name not in by_name]:
            progress("points of the trade-off", len(by_name), len(arms))
            file = point(inputs, arm)
            if file is not None:
                by_name[arm.name] = file
    progress("points of the trade-off", len(by_name), len(arms))
    return [by_name[arm.name] for arm in arms if arm.name in by_name]


def _spent(points: Sequence[Point]) -> dict[str, float]:
    """way -> mean seconds of its points."""
    by_way: dict[str, list[float]] = {}
    for row in points:
        by_way.setdefault(row.way, []).append(row.seconds.total)
    return {way: float(np.mean(seconds)) for way, seconds in by_way.items()}


def _gates(plan: Plan) -> tuple[HardConcrete, ...] | None:
    """The distributions of Figure 6 of the paper, with the gates used here and with the paper's beta."""
    if not any(way.chooser is not None and way.chooser.name == "l0" for way in map(Way.parse, plan.ways)):
        return None
    return (*VARIANTS["default"].shape.figure_6(), *VARIANTS["paper"].shape.figure_6())


def _drift(roles_before: Held, points: Sequence[Point]) -> tuple[Drift, ...]:
    """Changes of the roles of all heads in every pruned model."""
    return tuple(Drift(row.way, row.keep, row.seed, drift(roles_before, row.roles or {})) for row in points)


def _all_kinds(points: Sequence[Point], plan: Plan) -> tuple[WayKind, ...]:
    """Models by their heads of each kind, and those trained from scratch with the same heads (Table 2)."""
    scratch = {(row.keep, row.seed): row.after for row in points if row.way == SCRATCH}
    donor = plan.donor_way
    rows = []
    for row in points:
        if row.way != donor.name:
            continue
        # deterministic ways were measured once, and their heads used for all seeds
        seeds = plan.seeds if donor.steady and SCRATCH in plan.ways else (row.seed,)
        rows += [
            WayKind(row.way, row.keep, seed, row.kept_by_kind, row.after, scratch.get((row.keep, seed)))
            for seed in seeds
        ]
    return tuple(sorted(rows, key=lambda row: -row.keep))


def _gated(model: nn.Module, plan: Plan) -> int:
    """Number of heads that may be removed. Raises if the plan keeps more, or a number that the shape does not allow."""
    gated = len(counted_heads(model, plan.kinds))
    Budget(heads=max(plan.keep)).of(gated)
    for arm in plan.arms(gated):
        counted_layers(locate(model).groups, plan.kinds, arm.way.shape).fitted(Budget(heads=arm.keep))
    if gated in plan.keep:
        plan.check_control(gated)
    return gated


def _compared(
    files: Sequence[PointFile], plan: Plan, metric: Metric, base: np.ndarray, gated: int
) -> Iterator[WayCompared]:
    """Each way compared with the whole model, and with another way with as many heads, over all seeds.

    If the other way was also measured with all heads, which is fine-tuning alone, also with that: `lost_tuned`.
    """
    tuned = _statistics(files, plan.against, gated)
    for keep in plan.keep:
        theirs = _statistics(files, plan.against, keep)
        for way in plan.ways:
            ours = _statistics(files, way, keep)
            if not ours:
                continue
            yield WayCompared(
                way,
                keep,
                tuple(sorted(ours)),
                lost=_difference(dict.fromkeys(ours, base), ours, metric),
                lost_tuned=_paired(tuned, ours, plan, way, metric) if keep < gated else None,
                against=_paired(theirs, ours, plan, way, metric) if way != plan.against else None,
            )


def _statistics(files: Sequence[PointFile], way: str, keep: int) -> dict[int, np.ndarray]:
    """Statistics by seed; a deterministic way has only one."""
    return {
        file.point.seed: np.array(file.statistics) for file in files if (file.point.way, file.point.keep) == (way, keep)
    }


def _paired(
    theirs: dict[int, np.ndarray], ours: dict[int, np.ndarray], plan: Plan, way: str, metric: Metric
) -> Difference | None:
    """The difference over the seeds that both have; a deterministic way is paired with all seeds of the other."""
    if not theirs or not ours:
        return None
    steady = Way.parse(plan.against).steady, Way.parse(way).steady
    if steady[0] and not steady[1]:
        theirs = dict.fromkeys(ours, next(iter(theirs.values())))
    elif steady[1] and not steady[0]:
        ours = dict.fromkeys(theirs, next(iter(ours.values())))
    seeds = sorted(set(ours) & set(theirs))
    if not seeds:
        return None
    return _difference({seed: theirs[seed] for seed in seeds}, {seed: ours[seed] for seed in seeds}, metric)


def _difference(before: dict[int, np.ndarray], after: dict[int, np.ndarray], metric: Metric) -> Difference:
    """Second minus first: the mean over seeds, with an interval over seeds and examples, and the value of each seed."""
    seeds = sorted(before)
    table = counted(np.stack([np.stack([side[seed] for seed in seeds], axis=1) for side in (before, after)], axis=1))

    def differences(sums: np.ndarray) -> np.ndarray:
        """[..., 2, seeds, C] -> [..., seeds]."""
        values = metric.of_sums(sums)
        return np.asarray(values[..., 1, :] - values[..., 0, :])

    drawn_RS = np.concatenate([differences(sums) for sums in bootstrap_sums(table, resamples=_RESAMPLES)])
    values_S = differences(table.sum(0))
    runs = metric.possible_change(over_runs([values_S.tolist()], [list(drawn_RS.T)], examples=len(table)))
    by_seed = dict(zip(map(str, seeds), values_S.tolist(), strict=True))
    low, high, p = runs.low, runs.high, None
    if len(seeds) == 1:
        (comparison,) = metric.compare(table[:, 0, 0], table[None, :, 1, 0], resamples=_RESAMPLES)
        low, high, p = comparison.low, comparison.high, comparison.p
    return Difference(runs.value, low, high, p, by_seed, runs.parts, runs.behind)
