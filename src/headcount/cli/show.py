"""The terminal: prints results and progress. `report` has the content."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from json import dumps
from pathlib import Path
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from headcount import processes
from headcount.cli.characters import printable
from headcount.cli.lines import Lines, clock
from headcount.errors import UsageError
from headcount.record import Record


class _Console(Console):
    """A console that escapes control characters, and leaves a closed pipe to the program.

    Characters that the encoding of the output lacks are shown as question marks.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(self._encodable(printable(segment.text)), segment.style)

    def _encodable(self, text: str) -> str:
        return text.encode(self.encoding, "replace").decode(self.encoding)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """The console for results; only the main process prints."""
    return _Console(highlight=False, quiet=not processes.is_main())


def json(console: Console, record: Record) -> None:
    """Print a record as JSON, with escapes for characters that the encoding of the output may lack."""
    unicode = console.encoding.startswith("utf")
    console.print(record.to_json() if unicode else dumps(record.to_plain(), indent=2), soft_wrap=True, markup=False)


def working(what: str) -> AbstractContextManager[Any]:
    """Show a status on stderr during long work."""
    aside = _aside()
    return aside.status(escape(what)) if aside.is_terminal else Lines(aside, lambda: what)


def _aside() -> Console:
    return _Console(stderr=True, highlight=False, quiet=not processes.is_main())


def title(console: Console, name: str, rest: str) -> None:
    console.print(f"[bold]{escape(name)}[/]  {escape(rest)}\n", soft_wrap=True)


def result(
    record: Record, *, as_json: bool = False, all_rows: bool = False, note: str = "", hints: Iterable[str] = ()
) -> None:
    """Print a record as JSON, or as its sections of the report, a note and hints such as the next useful command.

    all_rows: print every row of long tables.
    """
    from headcount.report.text import show_result

    output = console()
    if as_json:
        json(output, record)
        return
    show_result(output, record, all_rows=all_rows)
    if note:
        line(output, note)
    for hint in hints:
        line(output, hint, dim=True)


def ledger(console: Console, record: Record) -> None:
    """Print the claims of the papers with their verdicts; the page explains how each is decided."""
    from headcount.report.section import sections
    from headcount.report.sections.ledger import verdict_table
    from headcount.report.text import terminal_table

    section, table = sections["ledger"], verdict_table([("", record)])
    console.print(Text(section.question, style="bold"))
    console.print(Text(section.answer(record)))
    console.print(terminal_table(table))
    console.print(Text(table.note, style="dim"))


def missing(console: Console, record: Record, *, name: str = "") -> None:
    """Print the parts of a study that could not be measured, with reasons. name: of the model, if there are several."""
    for part, reason in record.parts.missing.items():
        line(console, f"{name} {part} is missing: {reason}".lstrip(), dim=True)


def line(console: Console, text: str, *, dim: bool = False) -> None:
    """Print a line with a path or command to copy: never wrapped, never parsed as markup."""
    console.print(escape(text), style="dim" if dim else "", soft_wrap=True)


def _stands(task: Task) -> str:
    """The progress of a stage in words."""
    of = f" of {task.total:.0f}" if task.total else ""
    left = f", {clock(task.time_remaining)} left" if task.total and task.time_remaining else ""
    return f"{task.description} {task.completed:.0f}{of}{task.fields.get('measured', '')}{left}"


class _Display:
    """Progress bars on stderr, or plain lines if it is not a terminal."""

    def __init__(self, *columns: ProgressColumn) -> None:
        aside = _aside()
        self._progress = Progress(*columns, console=aside, disable=not aside.is_terminal)
        self._latest: TaskID | None = None
        self._lines = Lines(aside, self._stands)

    def _stands(self) -> str:
        return "" if self._latest is None else _stands(self._progress.tasks[self._latest])

    def __enter__(self) -> Self:
        self._progress.start()
        self._lines.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.__exit__()
        self._progress.stop()


class Bars(_Display):
    """One bar per stage of long work."""

    def __init__(self, *, every_part: bool = False) -> None:
        """every_part: if plain lines are printed, print one at the start of each stage too."""
        super().__init__(TextColumn("{task.description:30}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._tasks: dict[str, TaskID] = {}
        self._every_part = every_part and self._progress.disable

    def show(self, stage: str, step: int, of: int) -> None:
        new = stage not in self._tasks
        if new:
            self._tasks[stage] = self._progress.add_task(stage, total=of or None)
        self._latest = self._tasks[stage]
        self._progress.update(self._latest, completed=step, total=of or None)
        if new and self._every_part:
            self._lines.print()


class Training(_Display):
    """One bar with loss and speed; TensorBoard if asked for."""

    def __init__(self, tensorboard: Path | None = None) -> None:
        measured = TextColumn("{task.fields[measured]}", markup=False)
        super().__init__(BarColumn(), MofNCompleteColumn(), measured, TimeRemainingColumn())
        self._events = _summary_writer(tensorboard) if tensorboard else None

    def say(self, what: str) -> None:
        self._progress.console.print(escape(what), style="dim")

    def step(self, report: Any) -> None:
        """report: a training.loop.Report."""
        measured = f", epoch {report.epoch}, loss {report.loss:.3f}, {report.tokens_per_second:.0f} tokens/s"
        new = self._latest is None
        if self._latest is None:
            self._latest = self._progress.add_task("step", total=report.of or None, measured=measured)
        self._progress.update(self._latest, completed=report.step, total=report.of or None, measured=measured)
        if new and self._progress.disable:
            self._lines.print()
        if self._events:
            for name in ("loss", "tokens_per_second", "rate"):
                self._events.add_scalar(f"train/{name}", getattr(report, name), report.step)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._events:
            self._events.close()


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UsageError("--tensorboard needs the package tensorboard: pip install tensorboard.") from error
    return SummaryWriter(str(folder))
