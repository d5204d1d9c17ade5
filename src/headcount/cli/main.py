"""The `headcount` program: finds its commands as files beside this one, and turns errors into one clear line.

Listing commands and `--help` import neither torch nor transformers.
"""

from __future__ import annotations

from typing import Any

import click

from headcount import __version__
from headcount.cli.group import Files
from headcount.errors import HeadcountError, UsageError
from headcount.registry import Registry

commands: Registry[click.Command] = Registry("command", "headcount.cli.commands", "COMMAND")


class _Commands(Files):
    """The program's commands, with their errors as one clear line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise click.ClickException("Interrupted; nothing half-written was left behind.") from None
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise _one_line(error) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let --debug stand anywhere, also after the command."""
        return super().parse_args(
            ctx, ["--debug", *(arg for arg in args if arg != "--debug")] if "--debug" in args else args
        )


def _one_line(error: Exception) -> click.ClickException:
    """Exit status 2 for wrong usage, 1 for everything else."""
    if isinstance(error, UsageError):
        return click.UsageError(str(error))
    if isinstance(error, HeadcountError):
        return click.ClickException(str(error))
    return click.ClickException(
        f"Unexpected {type(error).__name__}: {error}. Run again with --debug for the traceback."
    )


@click.group(
    cls=_Commands, members=commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="headcount")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """What every attention head of a Transformer does, which heads matter, and a smaller model without the rest.

    MODEL is a folder with config.json and safetensors, or a hub id.
    """
