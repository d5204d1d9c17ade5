"""Point: one pruned model of the trade-off. Its pipeline is run once and saved.

DIR/arms/WAY-KEEP-SEED.json holds it, DIR/arms/WAY-KEEP-SEED/ the state of its training. A point that lacks only its
roles or its checkpoint is made again from its saved training.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from headcount import journal, locks, processes
from headcount.errors import UsageError
from headcount.head_roles.measure import Roles
from headcount.pruning.pipeline import Data, Execution, Pipeline
from headcount.pruning.run import Pruned, run
from headcount.pruning.saving import Saving
from headcount.pruning.way import Way, scratch_pipeline
from headcount.record.codec import decode, encode
from headcount.record.earlier import is_earlier
from headcount.record.results.prune import GatesEnd
from headcount.record.results.tradeoff import Point
from headcount.studies.kept import Looking
from headcount.studies.plan import Arm, Plan
from headcount.tasks.overlap import Examples

COMMAND = ("headcount prune MODEL", "--task TASK --data DATA --out DIR")
_LOOKED = 2  # version of `Looking.look`; 2: verdicts are corrected for the heads that are gone
_PAUSE = 1.0  # seconds between checks of a point that another process works on


@dataclass(frozen=True)
class Models:
    """Folder for the checkpoints of points."""

    folder: Path
    saving: Saving

    def path(self, arm: Arm) -> Path:
        return self.folder / arm.name

    def has(self, arm: Arm, earlier: PointFile) -> bool:
        """Whether the folder has the model of this measured point, not only one of its name."""
        return earlier.saved and (self.path(arm) / "config.json").is_file()

    def has_all(self, points: Iterable[Point]) -> bool:
        """Whether the models of all points are there."""
        arms = (Arm(Way.parse(point.way), point.keep, point.seed) for point in points)
        return all((self.path(arm) / "config.json").is_file() for arm in arms)

    def save(self, arm: Arm, pruned: Pruned, chosen_before: Sequence[Examples]) -> None:
        """Save the model of a point. One of other settings under its name stays as NAME.old.

        chosen_before: the examples that its heads were chosen on before its pipeline was run.
        """
        saving, folder = replace(self.saving, overwrite=True), self.path(arm)
        record, chosen_on = saving.completed(pruned.model, pruned.record), [*chosen_before, *pruned.chosen_on]
        if processes.is_main() and not is_earlier(folder / "record.json", record.to_plain()):
            journal.set_aside(folder)
        saving.save(pruned.model, folder, record, chosen_on)


def point_names(points: Iterable[Point], seeds: Sequence[int]) -> set[str]:
    """Names of the files of these points, and of those whose heads the points from scratch have."""
    ways = {(way, point.keep, seed) for point in points for way in (point.way, point.like) if way for seed in seeds}
    return {Arm(Way.parse(way), keep, seed).name for way, keep, seed in ways}


@dataclass(frozen=True)
class PointInputs:
    """Inputs that all points share."""

    model: nn.Module
    data: Data
    plan: Plan
    folder: Path
    looking: Looking | None = None
    whole_evidence: Roles | None = None  # for the roles of the whole model, if they are looked at
    models: Models | None = None
    command: tuple[str, str] = COMMAND  # before and after the arguments of a pipeline
    chosen_before: tuple[Examples, ...] = ()  # that heads were chosen on when the model was pruned before

    def file(self, arm: Arm) -> Path:
        return self.folder / "arms" / f"{arm.name}.json"

    def state(self, arm: Arm) -> Path:
        return self.folder / "arms" / arm.name

    def complete(self, arm: Arm, earlier: PointFile) -> bool:
        """Whether a measured point has everything that is requested."""
        looked_at = self.looking is None or earlier.looked == looked_by(self.looking)
        return looked_at and (self.models is None or self.models.has(arm, earlier))


def looked_by(looking: Looking) -> str:
    """How roles are measured now, and on which sentences; roles of another version are not mixed with them."""
    return f"{looking.fingerprint}, version {_LOOKED}"


@dataclass(frozen=True)
class PointFile:
    """A point as stored on disk."""

    point: Point
    statistics: tuple[tuple[float, ...], ...]  # statistics of each example at the end
    looked: str | None = None  # how its roles were measured, and on which sentences: `looked_by`
    saved: bool = False  # whether its model was saved

    @classmethod
    def read(cls, file: Path) -> PointFile:
        return decode(cls, journal.read_json(file), source=str(file))

    def write(self, file: Path) -> None:
        journal.write_json(file, encode(self))


def point(inputs: PointInputs, arm: Arm, *, wait: bool = False) -> PointFile | None:
    """A point, read from disk or made and saved. None if another process works on it and `wait` is not set."""
    if processes.count() > 1:
        return _together(inputs, arm)
    file = inputs.file(arm)
    while True:
        with locks.alone(file.with_suffix(locks.CLAIM)) as claimed:
            earlier = PointFile.read(file) if file.is_file() else None
            if earlier is not None and inputs.complete(arm, earlier):
                return earlier
            if claimed:
                result = _make(inputs, arm, earlier)
                result.write(file)
                return result
        if not wait:
            return None
        time.sleep(_PAUSE)


def _together(inputs: PointInputs, arm: Arm) -> PointFile:
    """All processes train one model together; the files of the first process count."""
    file = inputs.file(arm)
    on_disk = PointFile.read(file) if processes.is_main() and file.is_file() else None
    earlier = processes.gather(on_disk)[0]
    complete = earlier is not None and inputs.complete(arm, earlier)
    if earlier is not None and processes.gather(complete)[0]:  # models are on the disk of the first
        return earlier
    result = processes.gather(_make(inputs, arm, earlier))[0]
    if processes.is_main():
        result.write(file)
    return result


def _make(inputs: PointInputs, arm: Arm, earlier: PointFile | None) -> PointFile:
    """earlier: the point measured before, which lacks only its roles or its checkpoint."""
    pipeline, donor = _pipeline(inputs, arm)
    donated = map(Examples.of, inputs.plan.pipeline(donor).seen(inputs.data)) if donor else ()
    chosen_before = (*inputs.chosen_before, *donated)
    execution = Execution(
        folder=inputs.state(arm), shared=inputs.folder, measured="smaller" if earlier is None else "nothing",
        chosen_before=chosen_before,
    )  # fmt: skip
    pruned = run(pipeline, inputs.model, inputs.data, execution)
    result = earlier or PointFile(
        _point_of(inputs, arm, pipeline, pruned, donor), pruned.record.parts.statistics["after"]
    )
    if inputs.models is not None and not inputs.models.has(arm, result):
        inputs.models.save(arm, pruned, chosen_before)
        result = replace(result, saved=True)
    if inputs.looking is None or inputs.whole_evidence is None:
        return result
    roles, unsure = inputs.looking.look(pruned.model, inputs.whole_evidence)
    return replace(result, point=replace(result.point, roles=roles, unsure=unsure), looked=looked_by(inputs.looking))


def _pipeline(inputs: PointInputs, arm: Arm) -> tuple[Pipeline, Arm | None]:
    """The pipeline of a point, and the point whose heads a model from scratch has."""
    plan = inputs.plan
    if not arm.way.scratch:
        return plan.pipeline(arm), None
    donor = plan.donor(arm)
    result = point(inputs, donor, wait=True)
    if result is None:
        raise UsageError(
            f"{arm.name} needs the heads of the point {donor.name}, which failed. Run the same command again."
        )
    return scratch_pipeline(result.point.heads, plan.scratch_tuning, seed=arm.seed), donor


def _point_of(inputs: PointInputs, arm: Arm, pipeline: Pipeline, pruned: Pruned, donor: Arm | None) -> Point:
    """The point made from a record."""
    parts, (before, after) = pruned.record.parts, inputs.command
    gate_steps = parts.training["gates"].steps if pipeline.chooser.trains else 0
    tuning_steps = pipeline.tuning.steps or 0 if pipeline.tuning else 0
    if parts.quality.after is None:
        raise UsageError(f"The point {arm.name} has no quality: give data to evaluate on (--data).")
    gates = parts.gates
    return Point(
        way=arm.way.name,
        keep=arm.keep,
        seed=arm.seed,
        heads=parts.heads,
        kept_by_kind={kind: count for kind, count in parts.kept_by_kind.items() if count},
        cut=None if arm.way.scratch else parts.quality.cut,
        after=parts.quality.after,
        gates=GatesEnd(settled=gates.settled, reached=gates.reached, cut_by_rank=gates.cut_by_rank) if gates else None,
        gate_values=gates.values if gates else None,
        steps=gate_steps + tuning_steps,
        seconds=parts.seconds,
        like=donor.way.name if donor else None,
        command=" ".join((before, shlex.join(pipeline.to_arguments()), after)),
    )
