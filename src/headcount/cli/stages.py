"""Options of a command made from the options of pruning's stages, and a --help that shows them in groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from headcount.cli import options
from headcount.options import Limits, Options
from headcount.pruning.pipeline import choosers


class Share(click.ParamType[float]):
    """10% or 0.1."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            self.fail(f"{value!r} is not a percentage; give one such as 10%.", param, ctx)
        if text.endswith("%"):
            return number / 100
        if number >= 1:
            self.fail(f"{value!r} may be meant as a number of heads; give a percentage such as 10%.", param, ctx)
        return number


class Numbers(click.ParamType[tuple[float, ...]]):
    """0.01 or 0.01,0.02,0.05."""

    name = "numbers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(map(float, options.names(str(value))))
        except ValueError:
            self.fail(f"{value!r}: expected numbers such as 0.01 or 0.01,0.02,0.05.", param, ctx)
        if len(set(numbers)) < len(numbers):
            self.fail(f"{value!r} repeats a number; give each number once.", param, ctx)
        return numbers


class Grouped(click.Command):
    """A command whose --help shows options under headings; options without a heading come last."""

    def __init__(self, *rest: Any, headings: Mapping[str, Iterable[str]] | None = None, **settings: Any) -> None:
        """headings: heading -> names of parameters."""
        super().__init__(*rest, **settings)
        self.headings = {name: heading for heading, names in (headings or {}).items() for name in names}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        order = [*dict.fromkeys(self.headings.values()), "Other options"]
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in order}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None and isinstance(parameter, click.Option):
                rows[self.headings.get(parameter.name or "", order[-1])].append(row)
        for heading, lines in rows.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


def options_of(stage: type[Options]) -> list[Any]:
    """A decorator for each option of a stage."""
    return [_decorator(name, stage) for name in stage.limits()]


def _decorator(name: str, stage: type[Options]) -> Any:
    limits, flag, default = stage.limits()[name], stage.flags()[name], stage.defaults()[name]
    settings: dict[str, Any] = {"help": limits.help, "show_default": default is not None}
    if isinstance(default, bool):
        spelled = f"{flag}/{flag.replace('--', '--no-', 1)}" if default else flag
        return click.option(spelled, is_flag=True, default=default, show_default=default, help=limits.help)
    if limits.share and default is not None:
        default = f"{100 * default:g}%"
    return click.option(flag, type=_type(limits), default=default, **settings)


def _type(limits: Limits) -> Any:
    if limits.choices:
        return click.Choice(sorted(limits.choices))
    if limits.share:
        return Share()
    if limits.several:
        return Numbers()
    if limits.type is int:
        low, high = (None if bound is None else int(bound) for bound in (limits.minimum, limits.maximum))
        return click.IntRange(low, high, min_open=limits.above)
    return options.Real(limits.minimum, limits.maximum, min_open=limits.above)


def parameter(name: str, stage: type[Options]) -> str:
    """The name that click has for an option."""
    return stage.flags()[name].removeprefix("--").replace("-", "_")


def chooser_options() -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Every option of any chooser: its decorator, and the choosers that have it."""
    owners: dict[str, list[str]] = {}
    members = dict(choosers.items())
    for name, member in members.items():
        for option in member.limits():
            owners.setdefault(option, []).append(name)
    return {option: (_decorator(option, members[names[0]]), tuple(names)) for option, names in owners.items()}


def chooser_headings(options: Mapping[str, tuple[object, tuple[str, ...]]]) -> dict[str, list[str]]:
    """Headings of --help -> options: those of one chooser, and those that several share."""
    headings: dict[str, list[str]] = {}
    for option, (_, names) in options.items():
        spelled = " or ".join("SCORE" if name == "rank" else name for name in names)
        about = f": {choosers[names[0]].about}" if len(names) == 1 else ""
        headings.setdefault(f"With --choose {spelled}{about}", []).append(option)
    return headings
