"""The faults that a command is tested with, and the conditions that must hold afterwards."""

from __future__ import annotations

import math
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos import results
from chaos.commands import Command
from chaos.process import Interruption, Outcome, Program, Run, cache_of, can_mount, limit_mount, unmount

_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_PAGE = 4096  # bytes that the smallest file occupies in memory
_FREE = 1 << 30  # size in bytes of a disk that does not become full
SLOWEST = 120.0  # seconds allowed in addition for a busy machine


@dataclass(frozen=True)
class Reference:
    """The results of a run without a fault."""

    seconds: float
    changes: int  # number of disk changes
    results: dict[str, str]
    size: int  # total size of the written files in bytes, rounded up to pages
    largest: int  # size of the largest file in bytes

    @property
    def longest(self) -> float:
        return 20 * self.seconds + SLOWEST


@dataclass(frozen=True)
class Case:
    """One fault applied to one command."""

    command: str
    fault: str  # interrupted, full disk, file limit, read-only, two processes, model's folder
    interruptions: tuple[Interruption, ...] = ()
    share: float = 0.0  # free space or file size limit, as a fraction of the total or the largest file

    def __str__(self) -> str:
        how = ", then ".join(map(str, self.interruptions)) or (f"{100 * self.share:.0f}%" if self.share else "")
        return f"{self.command}: {self.fault}{f' ({how})' if how else ''}"


@dataclass(frozen=True)
class Verdict:
    """The result of a case."""

    case: Case
    faults: tuple[str, ...]  # empty if the command passed
    hit: bool  # whether the fault stopped the command
    lost: float  # additional seconds compared with a run without a fault
    refusal: str = ""


def planned(
    name: str, command: Command, reference: Reference, *, moments: int, seed: int, mounts: bool
) -> Iterator[Case]:
    """Return the cases of a command, which the seed determines except for times, which depend on the machine.

    `mounts` says whether this process can mount a disk of limited size.
    """
    draw = random.Random(f"{seed} {name}")
    signals = [_SIGNALS[number % 3] for number in range(moments)]
    draw.shuffle(signals)
    for number, kind in enumerate(signals):
        first = _moment(draw, kind, reference, by_change=number % 2 == 0)
        again = (_moment(draw, draw.choice(_SIGNALS), reference, by_change=True),) if number % 5 == 4 else ()
        yield Case(name, "interrupted", (first, *again))
    several = max(1, moments // 7)
    if mounts:
        yield from (Case(name, "full disk", share=draw.uniform(0.05, 0.95)) for _ in range(several))
    yield from (Case(name, "file limit", share=draw.uniform(0.05, 0.95)) for _ in range(max(1, several // 2)))
    yield Case(name, "read-only")
    yield Case(name, "two processes")
    if command.model:
        yield Case(name, "model's folder")


def _moment(draw: random.Random, kind: signal.Signals, reference: Reference, *, by_change: bool) -> Interruption:
    if by_change and reference.changes:
        return Interruption(kind, change=draw.randint(1, reference.changes))
    return Interruption(kind, seconds=draw.uniform(0, reference.seconds))


class Bench:
    """Runs cases: copies the inputs to new folders and runs the commands there."""

    def __init__(self, program: Program, inputs: Path, folder: Path) -> None:
        self.program, self.inputs, self.folder = program, inputs, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.mounts = can_mount(folder / "mounted")
        self._number = 0

    def fresh(self, command: Command, *, mounted: bool = False) -> Path:
        """Create a folder with the inputs and an empty tmp/, on its own disk if `mounted`."""
        self._number += 1
        folder = self.folder / str(self._number)
        folder.mkdir()
        if mounted:
            limit_mount(folder, f"size={_FREE}")
        shutil.copytree(self.inputs, folder, dirs_exist_ok=True, symlinks=True)
        (folder / "tmp").mkdir()
        if command.before:
            outcome = Run(self.program, command.before.split(), folder).wait(SLOWEST)
            if outcome.status:
                raise RuntimeError(f"{command.before}: {outcome.output}")
        return folder

    def reference(self, name: str, command: Command) -> tuple[Reference, Outcome]:
        folder = self.fresh(command)
        before = _size(folder)
        outcome = Run(self.program, command.arguments(), folder, counted=folder.parent / "counted").wait(600)
        if outcome.status:
            raise RuntimeError(f"{name} fails without any fault: {outcome.output}")
        out = folder / command.out
        files = [path for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file()]
        reference = Reference(
            outcome.seconds, outcome.changes, _results(folder, command), _size(folder) - before,
            max((path.stat().st_size for path in files), default=0),
        )  # fmt: skip
        for path in (folder, cache_of(folder)):
            shutil.rmtree(path, ignore_errors=True)
        return reference, outcome

    def judge(self, case: Case, command: Command, reference: Reference) -> Verdict:
        mounted = self.mounts and case.fault in ("full disk", "read-only")
        folder = self.fresh(command, mounted=mounted)
        try:
            return getattr(self, "_" + case.fault.replace(" ", "_").replace("-", "_").replace("'", ""))(
                case, command, reference, folder
            )
        finally:
            if mounted:
                unmount(folder)
            for path in (folder, cache_of(folder)):
                shutil.rmtree(path, ignore_errors=True)

    def _run(self, command: Command, folder: Path, longest: float, **fault: object) -> Outcome:
        return Run(self.program, command.arguments(), folder, **fault).wait(longest)  # type: ignore[arg-type]

    def _interrupted(self, case: Case, command: Command, reference: Reference, folder: Path) -> Verdict:
        faults: list[str] = []
        hit, spent = False, 0.0
        for interruption in case.interruptions:
            outcome = self._run(command, folder, reference.longest, interruption=interruption)
            hit, spent = hit or outcome.status != 0, spent + outcome.seconds
            faults += _after_fault(outcome, folder)
            if "Traceback" in outcome.output:
                faults.append(f"traceback: {outcome.output[outcome.output.index('Traceback') - 100 :][:1500]}")
        return self._again(case, command, reference, folder, faults, hit, spent)

    def _again(
        self,
        case: Case,
        command: Command,
        reference: Reference,
        folder: Path,
        faults: list[str],
        hit: bool,
        spent: float,
    ) -> Verdict:
        """Run the same command again without a fault; its results must equal the reference."""
        outcome = self._run(command, folder, reference.longest)
        wrong = results.differences(reference.results, _results(folder, command))
        if outcome.status != 0 and (wrong or not outcome.refusal):
            faults.append(f"the same command fails with status {outcome.status}: {outcome.output[-500:]}")
        faults += [f"result: {difference}" for difference in wrong[:5]]
        faults += [f"left: {name}" for name in _temporary(folder)]
        faults += [f"orphan process {orphan}" for orphan in outcome.orphans]
        lost = spent + outcome.seconds - reference.seconds if hit else 0.0
        return Verdict(case, tuple(faults), hit, max(0.0, lost), outcome.refusal)

    def _full_disk(self, case: Case, command: Command, reference: Reference, folder: Path) -> Verdict:
        used = shutil.disk_usage(folder).used
        size = used + math.ceil(case.share * reference.size / _PAGE) * _PAGE
        limit_mount(folder, f"size={size}", again=True)
        outcome = self._run(command, folder, reference.longest)
        limit_mount(folder, f"size={_FREE}", again=True)
        faults = [*_after_fault(outcome, folder), *_refused(outcome)]
        return self._again(case, command, reference, folder, faults, outcome.status != 0, outcome.seconds)

    def _file_limit(self, case: Case, command: Command, reference: Reference, folder: Path) -> Verdict:
        limit = max(1, int(case.share * reference.largest))
        outcome = self._run(command, folder, reference.longest, file_limit=limit)
        faults = [*_after_fault(outcome, folder), *_refused(outcome)]
        return self._again(case, command, reference, folder, faults, outcome.status != 0, outcome.seconds)

    def _read_only(self, case: Case, command: Command, reference: Reference, folder: Path) -> Verdict:
        self._write_protect(folder, True)
        outcome = self._run(command, folder, reference.longest)
        self._write_protect(folder, False)
        faults = [*_after_fault(outcome, folder), *_refused(outcome)]
        faults += [] if outcome.status else ["writes nothing and says that it succeeded"]
        return self._again(case, command, reference, folder, faults, True, outcome.seconds)

    def _write_protect(self, folder: Path, protected: bool) -> None:
        """Make the disk read-only, or the folder if mounting is not possible; the latter does not stop root."""
        if self.mounts:
            limit_mount(folder, "ro" if protected else "rw", again=True)
        else:
            folder.chmod(0o555 if protected else 0o755)

    def _two_processes(self, case: Case, command: Command, reference: Reference, folder: Path) -> Verdict:
        begin = time.monotonic()
        runs = [Run(self.program, command.arguments(), folder) for _ in range(2)]
        outcomes = [run.wait(2 * reference.longest) for run in runs]
        faults = [fault for outcome in outcomes for fault in (*_after_fault(outcome, folder), *_refused(outcome))]
        if all(outcome.status for outcome in outcomes):
            faults.append("both processes fail: " + " | ".join(outcome.output[-200:] for outcome in outcomes))
        return self._again(case, command, reference, folder, faults, True, time.monotonic() - begin)

    def _models_folder(self, case: Case, command: Command, reference: Reference, folder: Path) -> Verdict:
        model = folder / command.model
        before = results.contents(model, clock=False)
        outcome = Run(self.program, command.arguments(command.model), folder).wait(reference.longest)
        after = results.contents(model, clock=False)
        faults = [*_after_fault(outcome, folder), *_refused(outcome)]
        faults += [f"the model's {name}" for name in results.differences(before, after) if "not expected" not in name]
        if outcome.status:
            faults += [f"the model's folder: {name}" for name in results.differences(before, after)]
        return self._again(case, command, reference, folder, faults, outcome.status != 0, outcome.seconds)


def _size(folder: Path) -> int:
    return sum(math.ceil(path.stat().st_size / _PAGE) * _PAGE for path in folder.rglob("*") if path.is_file())


def _results(folder: Path, command: Command) -> dict[str, str]:
    """Return the contents of the whole folder, so that changed inputs count as a difference too."""
    entries = results.contents(folder, clock=command.clock)
    return {name: value for name, value in entries.items() if name != "tmp" and not name.startswith("tmp/")}


def _temporary(folder: Path) -> list[str]:
    inside_tmp = [f"tmp/{path.name}" for path in (folder / "tmp").iterdir()]
    return inside_tmp + [name for name in results.leftovers(folder) if not name.startswith("tmp")]


def _after_fault(outcome: Outcome, folder: Path) -> list[str]:
    faults = list(results.broken(folder))
    faults += [f"orphan process {orphan}" for orphan in outcome.orphans]
    if outcome.status == -signal.SIGABRT:
        where = outcome.output.partition("Fatal Python error")[2]  # the stack, the innermost call first
        faults.append(f"hangs: {where[:1500]}")
    return faults


def _refused(outcome: Outcome) -> list[str]:
    """Return a fault if a failed command does not print a one-line error."""
    if outcome.status == 0 or outcome.refusal:
        return []
    return [f"ends with status {outcome.status} without a clear line: {outcome.output[-500:]}"]
