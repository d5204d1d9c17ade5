"""Point: one smaller model of the trade-off, from the choice of its heads to its quality.

DIR/arms/WAY-KEEP-SEED.json holds it, DIR/arms/WAY-KEEP-SEED/ the state of its training. A point that lacks only what
its heads do is looked at again: its training is read, not run.
"""

from __future__ import annotations

import copy
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from headcount import journal, locks, processes
from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.methods import fisher, greedy
from headcount.methods.course import learn, only_trained, random_rate, trainable, usual_rate
from headcount.methods.cutting import counted_heads
from headcount.methods.learned import described
from headcount.methods.method import prune
from headcount.scores.score import score
from headcount.selection.budget import Budget
from headcount.selection.select import select
from headcount.sites.locate import locate
from headcount.studies.kept import Looking
from headcount.studies.plan import Arm, Data, Plan
from headcount.studies.trail import follow
from headcount.studies.way import SCRATCH
from headcount.surgery.compensate import compensate
from headcount.surgery.remove import remove
from headcount.tasks.distilled import distilled
from headcount.training.transformer import forget

_PAUSE = 1.0  # seconds between looks at a point that another process is at


@dataclass(frozen=True)
class Work:
    """What every point is made of."""

    model: nn.Module
    data: Data
    plan: Plan
    folder: Path
    looking: Looking | None = None

    def file(self, arm: Arm) -> Path:
        return self.folder / "arms" / f"{arm.name}.json"

    def state(self, arm: Arm) -> Path:
        return self.folder / "arms" / arm.name


def point(work: Work, arm: Arm, *, wait: bool = False) -> dict[str, Any] | None:
    """A point as it is on disk, or made here and kept; None where another process is at it and `wait` is not asked."""
    if processes.count() > 1:
        return _together(work, arm)
    file = work.file(arm)
    while True:
        with locks.alone(file.with_suffix(".claim")) as mine:
            known = journal.read_json(file) if file.is_file() else None
            if known is not None and _complete(work, known):
                return dict(known)
            if mine:
                found = _made(work, arm, known)
                journal.write_json(file, found)
                return found
        if not wait:
            return None
        time.sleep(_PAUSE)


def _together(work: Work, arm: Arm) -> dict[str, Any]:
    """All processes train one model: what the first one finds on its disk decides, and what it finds out is kept."""
    file = work.file(arm)
    mine = journal.read_json(file) if processes.is_main() and file.is_file() else None
    known = processes.gather(mine)[0]
    if known is not None and _complete(work, known):
        return dict(known)
    found = processes.gather(_made(work, arm, known))[0]
    if processes.is_main():
        journal.write_json(file, found)
    return found


def _complete(work: Work, known: dict[str, Any]) -> bool:
    return work.looking is None or known.get("looked") == work.looking.fingerprint


def _made(work: Work, arm: Arm, known: dict[str, Any] | None) -> dict[str, Any]:
    """known: the point as it was measured before, of which only the roles are asked."""
    make = _learned if arm.way.learned else _scratch if arm.way.choice == SCRATCH else _cut
    small, found = make(work, arm, measured=known is None)
    found = {"way": arm.way.name, "keep": arm.keep, "seed": arm.seed, **found, **(known or {})}
    if work.looking is not None:
        found |= {"roles": work.looking.roles(small), "looked": work.looking.fingerprint}
    return found


def _quality(work: Work, model: nn.Module, *, measured: bool) -> dict[str, Any] | None:
    return described(work.data.measure.quality(model)) if measured else None


def _learned(work: Work, arm: Arm, *, measured: bool) -> tuple[nn.Module, dict[str, Any]]:
    course = {**asdict(work.plan.course), "distill": work.plan.distill if arm.way.distilled else 0.0}
    del course["seed"]
    result = prune(
        arm.way.choice, work.model, work.data.train, budget=Budget(heads=arm.keep), kinds=work.plan.kinds,
        seed=arm.seed, measure_on=work.data.measure if measured else None, folder=work.state(arm), **course,
    )  # fmt: skip
    parts = result.record.parts
    gates = {name: parts["gates"][name] for name in ("settled", "reached", "cut_by_rank")}
    return result.model, {
        "heads": parts["kept_heads"],
        "cut": parts["quality"]["cut"],  # weights have learned with the gates already
        "after": parts["quality"]["after"],
        "gates": gates,
        "steps": work.plan.course.steps + work.plan.course.tune,
        "seconds": _seconds(parts["course"]["gates"]["seconds"], parts["course"]["tuning"]["seconds"]),
    }


def _seconds(choosing: float, tuning: float) -> dict[str, float]:
    """choosing: until the smaller model stands, steps with gates among it; measuring quality is left out."""
    return {"choosing": choosing, "tuning": tuning, "total": choosing + tuning}


def _cut(work: Work, arm: Arm, *, measured: bool) -> tuple[nn.Module, dict[str, Any]]:
    """Heads of the model as it is; fine-tuned, for the steps that others need in all, or not."""
    started, model, way = time.perf_counter(), work.model, arm.way
    mask, earlier = _chosen(work, arm)
    made_up: Any = "none"
    if way.compensate != "none":
        made_up = compensate(model, mask, work.data.choose, way.compensate)
    small = remove(model, mask, compensate=made_up)
    choosing = time.perf_counter() - started + earlier
    cut = _quality(work, small, measured=measured)
    found: dict[str, Any] = {"heads": [str(head) for head in mask.kept], "cut": cut, "after": cut, "steps": 0}
    if not way.tuned:
        return small, {**found, "seconds": _seconds(choosing, 0.0)}
    course = work.plan.course
    steps, rate = course.steps + course.tune, course.rate or usual_rate(model, work.data.train)
    with only_trained(small, work.plan.kinds):
        recipe = course.recipe(steps, rate, falls=True, seed=arm.seed)
        train = distilled(trainable(work.data.train), model, work.plan.distill if way.distilled else 0.0)
        done = learn(small, train, recipe, work.state(arm), part=way.name)
    found |= {"after": _quality(work, small, measured=measured), "steps": steps}
    return small, {**found, "seconds": _seconds(choosing, done["seconds"])}


def _chosen(work: Work, arm: Arm) -> tuple[HeadGrid, float]:
    """The heads that stay, by the model and the data to choose on alone; seconds that this took other points."""
    model, task, kinds = work.model, work.data.choose, work.plan.kinds
    choice, budget = arm.way.choice, Budget(heads=arm.keep)
    if choice == "fisher":
        return fisher.search(model, fisher.information(model, task), budget, kinds=kinds), 0.0
    if choice == "greedy":
        gone = len(counted_heads(model, kinds)) - arm.keep
        begin = partial(greedy.Search, model, task, kinds=kinds, compensate=arm.way.compensate)
        return follow(work.folder / f"greedy-{arm.way.compensate}.json", begin, gone)
    options: dict[str, Any] = {"seed": arm.seed} if choice == "random" else {}
    return select(score(choice.removeprefix("rank-"), model, task, **options), budget, kinds=kinds), 0.0


def _scratch(work: Work, arm: Arm, *, measured: bool) -> tuple[nn.Module, dict[str, Any]]:
    """The heads of another way, new random weights, everything trained."""
    donor = work.plan.donor(arm)
    given = point(work, donor, wait=True)
    if given is None:
        raise UsageError(f"The point {donor.name}, whose heads {arm.name} has, could not be made.")
    fresh = copy.deepcopy(work.model)
    forget(fresh, seed=arm.seed)
    small = remove(fresh, locate(fresh).mask(keep=given["heads"]), inplace=True)
    plan = work.plan
    train = trainable(work.data.train)
    recipe = plan.course.from_random(plan.scratch_steps, random_rate(work.model, train), falls=True, seed=arm.seed)
    done = learn(small, train, recipe, work.state(arm), part=SCRATCH)
    return small, {
        "heads": given["heads"], "cut": None, "after": _quality(work, small, measured=measured), "like": donor.way.name,
        "steps": plan.scratch_steps, "seconds": _seconds(0.0, done["seconds"]),
    }  # fmt: skip
