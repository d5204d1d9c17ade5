"""The trade-off (Voita et al. 2019, section 6): quality against the heads left, by several ways of choosing them.

Every way gets the same number of training steps: a rank is fine-tuned for as many as gates and fine-tuning together.
DIR/arms/WAY-KEEP-SEED.json holds one point; the same command again goes on, and processes begun alike share the points.
"""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headcount import journal, processes
from headcount.errors import UsageError
from headcount.heads import Head
from headcount.methods.course import Course, Progress, learn, only_trained, trainable, usual_rate
from headcount.methods.learned import described
from headcount.methods.method import prune
from headcount.metrics import Metric
from headcount.record import Record, Signature
from headcount.scores.score import members, score
from headcount.selection.budget import Budget
from headcount.selection.select import select
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import paired_bootstrap
from headcount.surgery.remove import remove
from headcount.tasks.task import Task
from headcount.training.transformer import forget

LEARNED = ("l0", "subset")
_RESAMPLES = 1000


@dataclass(frozen=True)
class Plan:
    """Which points are measured: each way, with each number of heads left, for each seed."""

    keep: tuple[int, ...]
    ways: tuple[str, ...] = ("l0", "subset", "rank-gradient", "random", "scratch")
    kinds: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = (0,)
    course: Course = field(default_factory=Course)
    scratch_steps: int = 2400  # of the models trained from random weights, with the heads that l0 (or the first) kept
    scratch_rate: float = 5e-3
    against: str = "rank-gradient"  # the way that others are compared with

    def __post_init__(self) -> None:
        known = [*LEARNED, "random", "scratch", *(f"rank-{name}" for name in members.names() if name != "random")]
        for way in self.ways:
            if way not in known:
                raise UsageError(f"Unknown way of pruning {way!r}; known: {', '.join(known)}.")
        if not self.keep or not self.ways or not self.seeds:
            raise UsageError("A trade-off needs at least one number of heads, one way of pruning and one seed.")


@dataclass(frozen=True)
class Data:
    """What is trained on, what heads are chosen by, and what is measured."""

    train: Task
    choose: Task
    measure: Task


def tradeoff(
    model: nn.Module,
    data: Data,
    plan: Plan,
    *,
    name: str = "",
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Record:
    """Measure every point of the plan, and compare the ways, paired on the same examples."""
    whole = data.measure.quality(model)
    with tempfile.TemporaryDirectory() if folder is None else nullcontext(str(folder)) as place:
        journal.claim(Path(place), "work.json", _identity(model, data, plan))
        points = list(_points(model, data, plan, Path(place), progress))
    parts: dict[str, Any] = {
        "metric": whole.metric.name,
        "whole": _short(described(whole)),
        "gated": sum(plan.kinds is None or head.kind in plan.kinds for head in locate(model).heads),
        "of": dict(Counter(head.kind for head in locate(model).heads)),
        "tradeoff": [_short(point) for point in points],
        "against": plan.against,
        "compared": _compared(points, plan, whole.metric, whole.statistics),
        "steps": {"trained and tuned": plan.course.steps + plan.course.tune, "scratch": plan.scratch_steps},
        "missing": len(plan.keep) * len(plan.ways) * len(plan.seeds) - len(points),
    }
    return Record("tradeoff", Signature(name, weight_hash(model), data.measure.fingerprint, None, asdict(plan)), parts)


def _identity(model: nn.Module, data: Data, plan: Plan) -> dict[str, Any]:
    """What every point depends on, whichever points are asked for."""
    settings = {name: value for name, value in asdict(plan).items() if name not in ("keep", "ways", "seeds", "against")}
    prints = {name: getattr(data, name).fingerprint for name in ("train", "choose", "measure")}
    return {"weights": weight_hash(model), **prints, **settings}


def _points(model: nn.Module, data: Data, plan: Plan, folder: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    """One at a time, those of other processes left out; ways that build on others last."""
    ways = sorted(plan.ways, key=lambda way: way == "scratch")
    wanted = [(seed, keep, way) for seed in plan.seeds for keep in plan.keep for way in ways]
    for number, (seed, keep, way) in enumerate(wanted, start=1):
        file = folder / "arms" / f"{way}-{keep}-{seed}.json"
        with nullcontext(True) if processes.count() > 1 else journal.alone(file.with_suffix(".claim")) as mine:
            if mine and not file.is_file():
                journal.write_json(file, _point(model, data, plan, folder, (seed, keep, way)))
            if file.is_file():
                yield journal.read_json(file)
        progress("points of the trade-off", number, len(wanted))


def _point(model: nn.Module, data: Data, plan: Plan, folder: Path, which: tuple[int, int, str]) -> dict[str, Any]:
    seed, keep, way = which
    if way in LEARNED:
        found = _learned(model, data, plan, folder, which)
    elif way == "scratch":
        found = _scratch(model, data, plan, folder, which)
    else:
        found = _ranked(model, data, plan, folder, which)
    return {"way": way, "keep": keep, "seed": seed, **found}


def _learned(model: nn.Module, data: Data, plan: Plan, folder: Path, which: tuple[int, int, str]) -> dict[str, Any]:
    seed, keep, way = which
    course = asdict(plan.course)
    del course["clip"], course["seed"]
    result = prune(
        way, model, data.train, budget=Budget(heads=keep), kinds=plan.kinds, seed=seed, measure_on=data.measure,
        folder=_work(folder, which), **course,
    )  # fmt: skip
    parts = result.record.parts
    gates = {name: parts["gates"][name] for name in ("settled", "reached", "cut_by_rank")}
    return {
        "heads": parts["kept_heads"],
        "cut": parts["quality"]["cut"],  # weights have learned with the gates already
        "after": parts["quality"]["after"],
        "gates": gates,
    }


def _ranked(model: nn.Module, data: Data, plan: Plan, folder: Path, which: tuple[int, int, str]) -> dict[str, Any]:
    """Heads in the order of a score; the same steps as others need in all, for fine-tuning alone."""
    seed, keep, way = which
    options: dict[str, Any] = {"seed": seed} if way == "random" else {}
    order = score(way.removeprefix("rank-"), model, data.choose, **options)
    mask = select(order, Budget(heads=keep), kinds=plan.kinds)
    small = remove(model, mask)
    cut = described(data.measure.quality(small))
    steps = plan.course.steps + plan.course.tune
    rate = plan.course.rate or usual_rate(model, data.train)
    with only_trained(small, plan.kinds):
        recipe = plan.course.recipe(steps, rate, falls=True, seed=seed)
        learn(small, trainable(data.train), recipe, _work(folder, which), part=way)
    return {"heads": [str(head) for head in mask.kept], "cut": cut, "after": described(data.measure.quality(small))}


def _scratch(model: nn.Module, data: Data, plan: Plan, folder: Path, which: tuple[int, int, str]) -> dict[str, Any]:
    """The heads of another way, new random weights, everything trained."""
    seed, keep, _ = which
    others = [way for way in ("l0", *plan.ways) if (folder / "arms" / f"{way}-{keep}-{seed}.json").is_file()]
    if not others:
        raise UsageError("scratch takes the heads that another way keeps: give l0 or another way besides.")
    heads = journal.read_json(folder / "arms" / f"{others[0]}-{keep}-{seed}.json")["heads"]
    fresh = copy.deepcopy(model)
    forget(fresh, seed=seed)
    small = remove(fresh, locate(fresh).mask(keep=heads), inplace=True)
    recipe = plan.course.recipe(plan.scratch_steps, plan.scratch_rate, falls=True, seed=seed)
    learn(small, trainable(data.train), recipe, _work(folder, which), part="scratch")
    return {"heads": heads, "cut": None, "after": described(data.measure.quality(small)), "like": others[0]}


def _work(folder: Path, which: tuple[int, int, str]) -> Path:
    seed, keep, way = which
    return folder / "arms" / f"{way}-{keep}-{seed}"


def _short(point: dict[str, Any]) -> dict[str, Any]:
    """Without what each example adds: reports do not need it."""
    short = {name: value for name, value in point.items() if name != "statistics"}
    for part in ("cut", "after"):
        if isinstance(short.get(part), dict):
            short[part] = {name: value for name, value in short[part].items() if name != "statistics"}
    if "heads" in short:
        short["kept"] = dict(Counter(Head.parse(name).kind for name in short["heads"]))
    return short


def _compared(points: Sequence[dict[str, Any]], plan: Plan, metric: Metric, whole: np.ndarray) -> list[dict[str, Any]]:
    """Each way after fine-tuning against the whole model, and against another way with as many heads: all seeds."""
    found = []
    for keep in plan.keep:
        theirs = _statistics(points, plan.against, keep)
        for way in plan.ways:
            ours = _statistics(points, way, keep)
            if not ours:
                continue
            row: dict[str, Any] = {"way": way, "keep": keep, "seeds": sorted(ours)}
            row["lost"] = _difference(dict.fromkeys(ours, whole), ours, metric)
            both = sorted(set(ours) & set(theirs))
            if way != plan.against and both:
                row["against"] = _difference({seed: theirs[seed] for seed in both}, ours, metric)
            found.append(row)
    return found


def _statistics(points: Sequence[dict[str, Any]], way: str, keep: int) -> dict[int, np.ndarray]:
    return {
        point["seed"]: np.array(point["after"]["statistics"])
        for point in points
        if point["way"] == way and point["keep"] == keep
    }


def _difference(first: dict[int, np.ndarray], second: dict[int, np.ndarray], metric: Metric) -> dict[str, Any]:
    """Second minus first, the mean over seeds, with the paired interval over examples."""
    seeds = sorted(first)
    one, other = (np.stack([some[seed] for seed in seeds], axis=1) for some in (first, second))  # [N, seeds, C]

    def mean(sums: np.ndarray) -> np.ndarray:
        """[..., seeds * C] -> [...]."""
        values: np.ndarray = metric.of_sums(sums.reshape(*sums.shape[:-1], *one.shape[1:])).mean(-1)
        return values

    flat = (len(one), -1)
    (found,) = paired_bootstrap(one.reshape(flat), other.reshape(flat)[None], mean, resamples=_RESAMPLES)
    return found._asdict()
