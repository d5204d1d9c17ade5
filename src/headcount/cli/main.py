"""The `headcount` program: loads its commands from a package and prints errors as one line.

Listing commands and `--help` do not import torch or transformers.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import click

from headcount import __version__
from headcount.cli.characters import printable
from headcount.cli.group import Files
from headcount.errors import HeadcountError, UsageError
from headcount.registry import Registry

_CLOSED_PIPE, _TERMINATED = 141, 143  # 128 + SIGPIPE, 128 + SIGTERM, the exit status in shells
_AFTER_DESTRUCTOR = 0.01  # seconds

# Idle OpenMP threads spin by default, which slows other threads on a busy machine. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# The program shows its own progress; progress bars of datasets fill log files. Read when datasets is imported.
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

commands: Registry[click.Command] = Registry("command", "headcount.cli.commands", "COMMAND")


class _Commands(Files):
    """The commands of the program; errors are printed as one line."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().main(*arguments, **options)
        finally:  # exit handlers run in reverse order: Ctrl-C in those of other libraries would print tracebacks
            atexit.unregister(_ignore_interrupts)
            atexit.register(_ignore_interrupts)

    def make_context(self, *rest: Any, **options: Any) -> click.Context:
        with _ended_by_reader():
            return super().make_context(*rest, **options)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _ended_by_reader(), _ended_by_scheduler(), _repeated_interruptions(), _plain_warnings():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as interruption:
            kind = _StoppedByScheduler if isinstance(interruption, _Terminated) else click.ClickException
            notes = getattr(interruption, "__notes__", [])  # results that the command has already written
            raise kind(" ".join(["Interrupted; no partly written files were left behind.", *notes])) from None
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise _one_line(error) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept --debug anywhere, including after the command."""
        return super().parse_args(
            ctx, ["--debug", *(arg for arg in args if arg != "--debug")] if "--debug" in args else args
        )


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Terminated(KeyboardInterrupt):
    """An interruption by SIGTERM, which kill and batch systems send."""


class _StoppedByScheduler(click.ClickException):
    """The error for SIGTERM, with the exit status that batch systems expect."""

    exit_code = _TERMINATED


@contextlib.contextmanager
def _ended_by_scheduler() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that temporary files and locks are removed."""

    def end(*_: object) -> None:
        raise _Terminated

    usual = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if usual:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if usual:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _repeated_interruptions() -> Iterator[None]:
    """Resend a signal whose exception was raised in a destructor, where Python prints exceptions and continues."""
    usual = sys.unraisablehook

    def repeat(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            usual(unraisable)
            return
        number = signal.SIGTERM if issubclass(unraisable.exc_type, _Terminated) else signal.SIGINT
        # to the main thread, so that it wakes up from what it waits for
        target = (threading.main_thread().ident, number)
        threading.Timer(_AFTER_DESTRUCTOR, signal.pthread_kill, target).start()

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = usual


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings as one line, without the file and the source line that Python adds."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = usual


@contextlib.contextmanager
def _ended_by_reader() -> Iterator[None]:
    """Exit silently when the reader of a pipe closes it, as in `headcount ... | head -1`."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):  # discard buffered output
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(_CLOSED_PIPE) from None


def _one_line(error: Exception) -> click.ClickException:
    """Convert an error to a one-line message, with exit status 2 for wrong usage and 1 for other errors."""
    text = printable(str(error))
    if isinstance(error, UsageError):
        return click.UsageError(text)
    if isinstance(error, HeadcountError):
        return click.ClickException(text)
    if isinstance(error, UnicodeEncodeError):
        return click.ClickException(
            f"The output has the encoding {error.encoding}, which has no {error.object[error.start]!a}. Set "
            "PYTHONIOENCODING=utf-8 and run the same command again."
        )
    from headcount.journal import is_disk_full

    if is_disk_full(error):
        return click.ClickException(f"The disk is full: {text}. Free some space and run the same command again.")
    return click.ClickException(f"Unexpected {type(error).__name__}: {text}. Run again with --debug for the traceback.")


@click.group(
    cls=_Commands, members=commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="headcount")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """What every attention head of a Transformer does, which heads matter, and a smaller model without the rest.

    MODEL is a folder with config.json and safetensors, or a hub id.
    """
