"""The terminal: where results and progress are shown. What is in them is in `tables`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.status import Status
from rich.text import Text

from headcount import processes
from headcount.errors import UsageError


def console() -> Console:
    """Where results are printed; of several processes one prints."""
    return Console(highlight=False, quiet=not processes.is_main())


def json(console: Console, record: Any) -> None:
    """A record as JSON, as it is."""
    console.print(record.to_json(), soft_wrap=True, markup=False)


def working(what: str) -> Status:
    """A sign of life on stderr while something takes a while; nothing where stderr is no terminal."""
    return _aside().status(escape(what))


def _aside() -> Console:
    return Console(stderr=True, highlight=False, quiet=not processes.is_main())


def title(console: Console, name: str, rest: str) -> None:
    console.print(f"[bold]{escape(name)}[/]  {escape(rest)}\n", soft_wrap=True)


def measured(console: Console, parts: Mapping[str, Any]) -> None:
    """The first line of a result: what it was measured on, and whether heads were chosen on other texts."""
    from headcount.studies.held_out import measured_line

    described = parts.get("measured_on")
    if described:
        style = "" if described["held_out"] else "yellow"
        console.print(measured_line(described), style=style, markup=False, soft_wrap=True)


def line(console: Console, text: str, *, dim: bool = False) -> None:
    """A line that holds a path or a command to copy: never wrapped, never read as markup."""
    console.print(escape(text), style="dim" if dim else "", soft_wrap=True)


class Bars:
    """One progress bar per part of long work, on stderr."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description:30}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=_aside())
        self._tasks: dict[str, TaskID] = {}

    def show(self, part: str, done: int, of: int) -> None:
        if part not in self._tasks:
            self._tasks[part] = self._progress.add_task(part, total=of or None)
        self._progress.update(self._tasks[part], completed=done, total=of or None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class Training:
    """A progress bar with loss and speed, on stderr, and TensorBoard events where asked for."""

    def __init__(self, tensorboard: Path | None = None) -> None:
        told = TextColumn("epoch {task.fields[epoch]}  loss {task.fields[loss]:.3f}  {task.fields[speed]:.0f} tokens/s")
        self._progress = Progress(BarColumn(), MofNCompleteColumn(), told, TimeRemainingColumn(), console=_aside())
        self._task: TaskID | None = None
        self._events = _summary_writer(tensorboard) if tensorboard else None

    def say(self, what: str) -> None:
        self._progress.console.print(escape(what), style="dim")

    def step(self, report: Any) -> None:
        """report: a training.loop.Report."""
        shown = {"epoch": report.epoch, "loss": report.loss, "speed": report.tokens_per_second}
        if self._task is None:
            self._task = self._progress.add_task("training", total=report.of or None, **shown)
        self._progress.update(self._task, completed=report.step, total=report.of or None, **shown)
        if self._events:
            for name in ("loss", "tokens_per_second", "rate"):
                self._events.add_scalar(f"train/{name}", getattr(report, name), report.step)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        if self._events:
            self._events.close()


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UsageError("--tensorboard needs the package tensorboard: pip install tensorboard.") from error
    return SummaryWriter(str(folder))


def claims(console: Console, found: list[Mapping[str, Any]]) -> None:
    """What the paper says, and whether it holds here."""
    words = {True: Text("holds", style="green"), False: Text("does not hold", style="red"), None: Text("open")}
    for claim in found:
        console.print(Text.assemble("\n", words[claim["holds"]], f": {claim['claim']}"), end="")
    console.print("\n")
