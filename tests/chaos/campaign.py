"""A campaign runs every case of every command, in processes forked from one that has imported all modules."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from chaos.cases import Bench, Case, Reference, Verdict, planned
from chaos.commands import Command
from chaos.process import Outcome, Program, can_mount
from chaos.results import differences

_FORK = multiprocessing.get_context("fork")
_THREADED = ("openvino", "ctranslate2", "onnxruntime", "xllamacpp")  # their threads do not survive a fork
Tell = Callable[[str], None]
Item, Value = TypeVar("Item"), TypeVar("Value")


@dataclass(frozen=True)
class Campaign:
    """The commands to test, and how many interruptions, processes and minutes to use."""

    program: Program
    commands: Mapping[str, Command]
    inputs: Path
    folder: Path
    seed: int = 0
    moments: int = 20
    workers: int = 2
    minutes: float | None = None  # no new case starts after this time

    def run(self, tell: Tell) -> dict[str, Any]:
        """Run all cases and return a summary that can be written as JSON."""
        begin = time.monotonic()
        references, faults = self._references(tell)
        mounts = can_mount(self.folder / "mounted")
        if not mounts:
            tell("nothing can be mounted: no case of a full disk")
        choice = {"moments": self.moments, "seed": self.seed, "mounts": mounts}
        work = [
            (case, self.commands[name], references[name])
            for name in references
            for case in planned(name, self.commands[name], references[name], **choice)
        ]
        random.Random(self.seed).shuffle(work)  # so that a time limit skips cases of all commands alike
        tell(f"{len(work)} cases of {len(references)} commands")
        deadline = math.inf if self.minutes is None else begin + 60 * self.minutes
        verdicts = self._verdicts(work, deadline, tell)
        return summary(self, references, verdicts, faults, time.monotonic() - begin)

    def _references(self, tell: Tell) -> tuple[dict[str, Reference], list[str]]:
        """Run each command twice without a fault and check that all time-independent results are equal.

        The first runs determine the modules to import in this process; the second runs are timed.
        """
        bench = Bench(self.program, self.inputs, self.folder / "reference")
        first: dict[str, Reference] = {}
        faults = []
        for name, command in self.commands.items():
            try:
                first[name], outcome = bench.reference(name, command)
            except RuntimeError as error:
                faults.append(str(error))
                tell(f"FAULT {error}")
                continue
            _preload(outcome)
        _share_memory()
        references = {}
        for name, reference in self._shared(list(first), self._second):
            unlike = differences(first[name].results, reference.results)
            faults += [f"{name} is not repeatable: {difference}" for difference in unlike]
            tell(f"{name}: {reference.seconds:.1f} s, {reference.changes} changes of the disk")
            for difference in unlike:
                tell(f"FAULT not repeatable: {difference}")
            references[name] = reference
        return {name: references[name] for name in first}, faults

    def _second(self, bench: Bench, name: str) -> tuple[str, Reference]:
        return name, bench.reference(name, self.commands[name])[0]

    def _verdicts(self, work: list[tuple[Case, Command, Reference]], deadline: float, tell: Tell) -> list[Verdict]:
        def judge(bench: Bench, case: tuple[Case, Command, Reference]) -> Verdict | None:
            return bench.judge(*case) if time.monotonic() < deadline else None

        verdicts = []
        for number, verdict in enumerate(self._shared(work, judge)):
            if verdict is None:  # skipped by the time limit
                continue
            verdicts.append(verdict)
            for fault in verdict.faults:
                tell(f"FAULT {verdict.case}: {fault}")
            if number % 50 == 49:
                tell(f"{number + 1} of {len(work)} cases")
        names = list(self.commands)
        return sorted(verdicts, key=lambda verdict: (names.index(verdict.case.command), str(verdict.case)))

    def _shared(self, items: Sequence[Item], work: Callable[[Bench, Item], Value]) -> Iterator[Value]:
        """Yield the result of each item when it is ready; each process takes the next item when it is free."""
        queue, taken = _FORK.SimpleQueue(), _FORK.Value("i", 0)
        members = [
            _FORK.Process(target=self._take, args=(self.folder / f"worker-{number}", items, work, taken, queue))
            for number in range(self.workers)
        ]
        for member in members:
            member.start()
        for _ in items:
            value, failure = queue.get()
            if failure:
                raise RuntimeError(failure)
            yield value
        for member in members:
            member.join()

    def _take(
        self, folder: Path, items: Sequence[Item], work: Callable[[Bench, Item], Value], taken: Any, queue: Any
    ) -> None:
        import traceback

        bench = Bench(self.program, self.inputs, folder)
        try:
            while True:
                with taken.get_lock():
                    number, taken.value = taken.value, taken.value + 1
                if number >= len(items):
                    return
                queue.put((work(bench, items[number]), ""))
        except BaseException:
            queue.put((None, traceback.format_exc()))
            raise


def _preload(outcome: Outcome) -> None:
    """Import the modules that a command has imported, so that processes forked later share them."""
    for name in outcome.modules:
        if name.partition(".")[0] in _THREADED:
            continue
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _share_memory() -> None:
    """Freeze the garbage collector, so that it does not touch and copy memory that forked processes share."""
    gc.collect()
    gc.freeze()


def summary(
    campaign: Campaign,
    references: Mapping[str, Reference],
    verdicts: Iterable[Verdict],
    faults: list[str],
    seconds: float,
) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    by_fault: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        case, reference = verdict.case, references[verdict.case.command]
        row = rows.setdefault(
            case.command,
            {"seconds": round(reference.seconds, 2), "changes": reference.changes, "cases": 0, "stopped": 0,
             "survived": 0, "lost": 0.0},
        )  # fmt: skip
        for table in (row, by_fault.setdefault(case.fault, {"cases": 0, "stopped": 0, "survived": 0})):
            table["cases"] += 1
            table["stopped"] += int(verdict.hit)
            table["survived"] += int(not verdict.faults)
        if case.fault == "interrupted":
            row["lost"] = round(max(row["lost"], verdict.lost), 2)
        faults = faults + [f"{case}: {fault}" for fault in verdict.faults]
    return {
        "seed": campaign.seed, "moments": campaign.moments, "workers": campaign.workers, "seconds": round(seconds),
        "commands": rows, "by_fault": by_fault, "faults": faults,
    }  # fmt: skip


def write(result: Mapping[str, Any], file: Path) -> None:
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_text(json.dumps(result, indent=2) + "\n")
    os.replace(fresh, file)


def clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
