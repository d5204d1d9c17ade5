"""headcount study: whole experiments, each with its record, its table and its figures."""

from __future__ import annotations

import click

from headcount.cli.group import Files
from headcount.registry import Registry

STUDIES: Registry[click.Command] = Registry("study", "headcount.cli.studies", "COMMAND")


@click.command("study", cls=Files, members=STUDIES)
def COMMAND() -> None:
    """Run a whole experiment on a model: its record, its table and its figures."""
