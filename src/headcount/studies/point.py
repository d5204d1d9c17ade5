"""Point: one smaller model of the trade-off: a pipeline that is run once and kept.

DIR/arms/WAY-KEEP-SEED.json holds it, DIR/arms/WAY-KEEP-SEED/ the state of its training. A point that lacks only what
its heads do, or its checkpoint, is made again: its training is read, not run.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from headcount import journal, locks, processes
from headcount.errors import UsageError
from headcount.pruning.pipeline import Data, Execution, Pipeline
from headcount.pruning.run import Pruned, run
from headcount.pruning.saving import Saving
from headcount.pruning.way import scratch_pipeline
from headcount.studies.kept import Looking
from headcount.studies.plan import Arm, Plan

COMMAND = ("headcount prune MODEL", "--task TASK --data DATA --out DIR")
_PAUSE = 1.0  # seconds between looks at a point that another process is at


@dataclass(frozen=True)
class Models:
    """Where the checkpoints of points go to, where they are kept."""

    folder: Path
    saving: Saving

    def path(self, arm: Arm) -> Path:
        return self.folder / arm.name

    def has(self, arm: Arm) -> bool:
        return (self.path(arm) / "config.json").is_file()


@dataclass(frozen=True)
class Work:
    """What every point is made of."""

    model: nn.Module
    data: Data
    plan: Plan
    folder: Path
    looking: Looking | None = None
    models: Models | None = None
    command: tuple[str, str] = COMMAND  # before and after the arguments of a pipeline

    def file(self, arm: Arm) -> Path:
        return self.folder / "arms" / f"{arm.name}.json"

    def state(self, arm: Arm) -> Path:
        return self.folder / "arms" / arm.name

    def complete(self, arm: Arm, earlier: dict[str, Any]) -> bool:
        """Whether a point that was measured has all that is asked for."""
        looked_at = self.looking is None or earlier.get("looked") == self.looking.fingerprint
        return looked_at and (self.models is None or self.models.has(arm))


def point(work: Work, arm: Arm, *, wait: bool = False) -> dict[str, Any] | None:
    """A point as it is on disk, or made here and kept; None where another process is at it and `wait` is not asked."""
    if processes.count() > 1:
        return _together(work, arm)
    file = work.file(arm)
    while True:
        with locks.alone(file.with_suffix(".claim")) as claimed:
            earlier = journal.read_json(file) if file.is_file() else None
            if earlier is not None and work.complete(arm, earlier):
                return dict(earlier)
            if claimed:
                result = _make(work, arm, earlier)
                journal.write_json(file, result)
                return result
        if not wait:
            return None
        time.sleep(_PAUSE)


def _together(work: Work, arm: Arm) -> dict[str, Any]:
    """All processes train one model: what the first one finds on its disk decides, and what it finds out is kept."""
    file = work.file(arm)
    on_disk = journal.read_json(file) if processes.is_main() and file.is_file() else None
    earlier = processes.gather(on_disk)[0]
    complete = earlier is not None and work.complete(arm, earlier)
    if earlier is not None and processes.gather(complete)[0]:  # models are on the disk of the first
        return dict(earlier)
    result = processes.gather(_make(work, arm, earlier))[0]
    if processes.is_main():
        journal.write_json(file, result)
    return result


def _make(work: Work, arm: Arm, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """known: the point as it was measured before, of which only what its heads do or its checkpoint is asked."""
    pipeline, donor = _pipeline(work, arm)
    before, after = work.command
    execution = Execution(
        folder=work.state(arm), shared=work.folder, measured="smaller" if earlier is None else "nothing"
    )
    pruned = run(pipeline, work.model, work.data, execution)
    result = {"way": arm.way.name, "keep": arm.keep, "seed": arm.seed, **_described(arm, pipeline, pruned)}
    result |= {"like": donor.way.name} if donor else {}
    result |= {"command": " ".join((before, shlex.join(pipeline.to_arguments()), after)), **(earlier or {})}
    if work.models is not None and not work.models.has(arm):
        pruned.record.signature = replace(pruned.record.signature, model=work.models.saving.source)
        work.models.saving.save(pruned.model, work.models.path(arm), pruned.record)
    if work.looking is not None:
        result |= {"roles": work.looking.roles(pruned.model), "looked": work.looking.fingerprint}
    return result


def _pipeline(work: Work, arm: Arm) -> tuple[Pipeline, Arm | None]:
    """The pipeline of a point, and the point whose heads a model from scratch has."""
    plan = work.plan
    if not arm.way.scratch:
        return plan.pipeline(arm), None
    donor = plan.donor(arm)
    result = point(work, donor, wait=True)
    if result is None:
        raise UsageError(f"The point {donor.name}, whose heads {arm.name} has, could not be made.")
    return scratch_pipeline(tuple(result["heads"]), plan.scratch_tuning, seed=arm.seed), donor


def _described(arm: Arm, pipeline: Pipeline, pruned: Pruned) -> dict[str, Any]:
    """What a point keeps of a record."""
    parts = pruned.record.parts
    gate_steps = parts["training"]["gates"]["steps"] if pipeline.chooser.trains else 0
    tuning_steps = pipeline.tuning.steps or 0 if pipeline.tuning else 0
    gates = {name: parts["gates"][name] for name in ("settled", "reached", "cut_by_rank")} if gate_steps else None
    return {
        "heads": parts["kept_heads"],
        "cut": None if arm.way.scratch else parts["quality"]["cut"],  # with gates, weights have learned already
        "after": parts["quality"]["after"],
        **({"gates": gates} if gates else {}),
        "steps": gate_steps + tuning_steps,
        "seconds": parts["seconds"],
    }
