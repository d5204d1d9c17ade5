"""Commands that run a whole study: the same for each paper, and for both."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import options

_GIVEN = ("model", "data", "task", "languages", "lowercase", "choose_on", "measure_on", "other", "metric", "sentences")


def whole(name: str, about: str) -> click.Command:
    """A command that runs the study of this name."""

    @click.command(name, help=about)
    @click.option("--model", help="A folder or a hub id.")
    @click.option("--data", help="As for headcount ablate: grammar, a folder, a file or hf:NAME.")
    @click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML with settings.")
    @click.option("--show", "shown", is_flag=True, help="Print every setting as TOML and stop.")
    @click.option("--task", type=click.Choice(["translation", "classification", "language-modelling"]))
    @click.option("--languages", help="Endings of the files of parallel text: SOURCE,TARGET.")
    @click.option("--lowercase", is_flag=True, default=None, help="Compare without regard to case (translation).")
    @click.option("--choose-on", help="Split that scores and masks come from.")
    @click.option("--measure-on", help="Split that quality is measured on.")
    @click.option("--other", help="A second split: do the same heads matter there?")
    @click.option("--metric")
    @click.option("--sentences", type=click.IntRange(1), help="Of each split at most.")
    @click.option("--parts", help="Only these parts, separated by commas.")
    @click.option("--out", default=f"study-{name}", show_default=True, type=options.FOLDER)
    @options.figure_formats
    @options.as_json
    def command(
        config: Path | None,
        shown: bool,
        parts: str | None,
        out: Path,
        formats: tuple[str, ...],
        as_json: bool,
        **given: Any,
    ) -> None:
        from headcount.studies.whole import Settings

        settings = Settings.read({**_read(config), **_asked(given)})
        if shown:
            click.echo(settings.to_toml(), nl=False)
            return
        with options.reserved(out, shared=True):  # processes begun alike share the points of the trade-off
            _run(name, settings, out, parts, formats, as_json)

    return command


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    asked = {name: given[name] for name in _GIVEN if given.get(name) is not None}
    if "languages" in asked:
        asked["languages"] = tuple(part.strip() for part in asked["languages"].split(","))
    return asked


def _read(config: Path | None) -> dict[str, Any]:
    import tomllib

    if config is None:
        return {}
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{config} is not TOML: {error}.") from error


def _run(name: str, settings: Any, out: Path, parts: str | None, formats: tuple[str, ...], as_json: bool) -> None:
    from headcount.cli import show
    from headcount.report.figure import write_all
    from headcount.studies.whole import whole_study

    wanted = [part.strip() for part in parts.split(",")] if parts else None
    with show.Bars(every_part=True) as bars:
        record = whole_study(name, settings, out, parts=wanted, progress=bars.show)
    console = show.console()
    figures: list[Path] = []
    for part, result in record.parts.records.items():
        figures += write_all(result, out / "figures" / part, formats)
    if as_json:
        show.json(console, record)
        return
    for part in record.parts.records:
        show.line(console, f"{part}: {out / 'parts' / part}.json")
    for part, reason in record.parts.missing.items():
        show.line(console, f"{part} is missing: {reason}")
    show.line(console, options.written(out, figures=bool(figures)), dim=True)
    show.line(console, f"Next: headcount report {shlex.quote(str(out))} --out report.html", dim=True)
