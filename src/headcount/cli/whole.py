"""Commands that run a whole study: the same for each paper, and for both."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options

if TYPE_CHECKING:
    from headcount.studies.study_settings import StudySettings

_SETTINGS = ("model", "task", "measure_split", "other_split", "metric", "beams", "batch_size", "max_length")
_SOURCE = ("languages", "columns", "text_column", "label", "pair", "limit", "lowercase")


def whole(name: str, about: str) -> click.Command:
    """A command that runs the study of this name."""

    @click.command(name, help=f"{about} A file of settings may give MODEL and --data.")
    @click.argument("model", required=False)
    @options.loading_only
    @click.option(
        "--task", type=click.Choice(data.TASKS.names()), help="What the model does; translation if not given."
    )
    @data.source(data.ANY, split="dev", required=False, fields=_SOURCE)
    @options.measure_split
    @options.other_split
    @click.option("--metric", help="The task's usual one if not given.")
    @click.option(
        "--beams", default=1, show_default=True, type=click.IntRange(1),
        help="Of translations; 1, greedy, is much faster.",
    )  # fmt: skip
    @options.batch_size
    @options.max_length
    @click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML with settings.")
    @click.option("--show", "show_settings", is_flag=True, help="Print every setting as TOML and stop.")
    @click.option("--parts", help="Only these parts, separated by commas.")
    @click.option("--out", default=f"study-{name}", show_default=True, type=options.FOLDER)
    @options.figure_formats
    @options.as_json
    def command(
        loading: options.Loading,
        source: data.Source,
        config: Path | None,
        show_settings: bool,
        parts: str | None,
        out: Path,
        formats: tuple[str, ...],
        as_json: bool,
        **arguments: Any,
    ) -> None:
        from headcount.studies.study_settings import StudySettings

        settings = StudySettings.read(_combined(_read(config), source, arguments))
        if show_settings:
            click.echo(settings.to_toml(), nl=False)
            return
        with options.reserved(out, shared=True):  # processes begun alike share the points of the trade-off
            _run(name, settings, loading, out, parts, formats, as_json)

    return command


def _combined(values: dict[str, Any], source: data.Source, arguments: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, with those of the command line over them."""
    context, nothing = click.get_current_context(), data.Source("")

    def typed(name: str) -> bool:
        return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE

    of_source = {name: value for name, value in asdict(source).items() if value != getattr(nothing, name)}
    if not typed("split"):
        del of_source["split"]
    settings = {name: arguments[name] for name in _SETTINGS if typed(name)}
    return {**values, **settings, "source": {**values.get("source", {}), **of_source}}


def _read(config: Path | None) -> dict[str, Any]:
    import tomllib

    if config is None:
        return {}
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{config} is not TOML: {error}.") from error


def _run(
    name: str,
    settings: StudySettings,
    loading: options.Loading,
    out: Path,
    parts: str | None,
    formats: tuple[str, ...],
    as_json: bool,
) -> None:
    from headcount.cli import show
    from headcount.report.figure import write_all
    from headcount.studies.whole import LEDGER, whole_study

    with show.Bars(every_part=True) as bars:
        record = whole_study(
            name, settings, out, loading=loading, parts=options.names(parts) or None, progress=bars.show
        )
    console = show.console()
    figures: list[Path] = []
    for part, result in record.parts.records.items():
        figures += write_all(result, out / "figures" / part, formats)
    if as_json:
        show.json(console, record)
        return
    show.ledger(console, record.parts.records[LEDGER])
    show.missing(console, record)
    files = options.written(out, figures=bool(figures))
    show.line(console, f"{files}; report: headcount report {shlex.quote(str(out))} --out report.html", dim=True)
