"""Commands that run a whole study: the same for each paper, and for both."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options

if TYPE_CHECKING:
    from headcount.record import Record
    from headcount.studies.study_settings import StudySettings

_SETTINGS = ("task", "measure_split", "other_split", "metric", "beams", "batch_size", "max_length")
_SOURCE = ("languages", "columns", "text_column", "label", "pair", "limit", "lowercase")


_SEVERAL = (
    "Several MODELS get a folder each in --out, and the claims of the papers are decided on all; processes "
    "of the same command share the models. MODEL and --data can also be set in the --config file; for a model that "
    "headcount train made from the embedded corpus, --data defaults to that corpus."
)


def whole(name: str, about: str) -> click.Command:
    """A command that runs the study of this name."""

    @click.command(name, help=f"{about} {_SEVERAL}")
    @options.model_argument("models", nargs=-1)
    @options.loading_only
    @options.choice("--task", data.NAMES, "Task of the model. Default: translation.")
    @data.source(data.ANY, split="dev", required=False, fields=_SOURCE)
    @options.measure_split
    @options.other_split
    @click.option("--metric", help="Metric. Default: that of the task.")
    @options.integer("--beams", "Beams of beam search; 1, greedy decoding, is much faster.", 1)
    @options.batch_size
    @options.max_length
    @click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="TOML file with settings; options replace them. Default: none.",
    )
    @click.option("--show", "show_settings", is_flag=True, help="Print every setting as TOML and stop.")
    @click.option("--parts", help="Run only these parts, separated by commas. Default: all.")
    @click.option(
        "--out", default=f"study-{name}", show_default=True, type=options.FOLDER,
        help="Folder for the records, figures and unfinished work of the study.",
    )  # fmt: skip
    @options.figure_formats
    @options.as_json
    def command(
        models: tuple[str, ...],
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

        file = _read(config)
        settings = [StudySettings.read(_combined(file, model, source, arguments)) for model in models or [""]]
        if show_settings:
            click.echo(settings[0].to_toml(), nl=False)
            return
        if len(settings) > 1:
            options.refuse_other_results(out, "pool")
        with options.reserved(out, shared=True):  # processes of the same command share the work
            record = _run(name, settings, loading, out, options.names(parts) or None)
            _present(record, [of_model.model for of_model in settings], out, formats, as_json)

    return command


def _combined(values: dict[str, Any], model: str, source: data.Source, arguments: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by those of the command line; data defaults to that of the training."""
    from headcount.studies.study_settings import trained_on

    nothing = data.Source("")
    of_source = {name: value for name, value in asdict(source).items() if value != getattr(nothing, name)}
    if not options.is_typed("split"):
        of_source.pop("split", None)
    settings = {name: arguments[name] for name in _SETTINGS if options.is_typed(name)}
    settings |= {"model": model} if model else {}
    corpus = trained_on(model or str(values.get("model", "")))
    by_default = {"data": corpus} if corpus else {}
    return {**values, **settings, "source": {**by_default, **values.get("source", {}), **of_source}}


def _read(config: Path | None) -> dict[str, Any]:
    import tomllib

    if config is None:
        return {}
    try:
        settings = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{config} is not TOML: {error}.") from error
    if not isinstance(settings.get("source", {}), dict):
        raise click.UsageError(f"{config}: source must be a table with data = ...; got {settings['source']!r}.")
    return settings


def _run(
    name: str, settings: Sequence[StudySettings], loading: options.Loading, out: Path, parts: Sequence[str] | None
) -> Record:
    from headcount.cli import show
    from headcount.studies.pool import study_pool
    from headcount.studies.whole import whole_study

    with show.Bars(every_part=True) as bars:
        if len(settings) > 1:
            return study_pool(name, settings, out, loading=loading, parts=parts, progress=bars.show)
        return whole_study(name, settings[0], out, loading=loading, parts=parts, progress=bars.show)


def _present(record: Record, models: Sequence[str], out: Path, formats: tuple[str, ...], as_json: bool) -> None:
    """Draw the figures of a study, or of all studies of a pool together, and print the ledger.

    models: those that are studied, also by other processes.
    """
    from headcount.claims.pool import LEDGER
    from headcount.cli import show
    from headcount.record.results.pool import Pool
    from headcount.report.figure import write_together
    from headcount.studies.parts_folder import is_unfinished

    console, parts = show.console(), record.parts
    studies = list(parts.studies.values()) if isinstance(parts, Pool) else [record]
    by_part: dict[str, list[Record]] = {}
    for study in studies:
        for part, result in study.parts.records.items():
            by_part.setdefault(part, []).append(result)
    figures: list[Path] = []
    under_way = sum(model not in parts.studies for model in models) if isinstance(parts, Pool) else 0
    unfinished = {part for part, results in by_part.items() if any(map(is_unfinished, results))}
    for part, results in by_part.items():
        if not under_way and part not in unfinished:  # the process that ends last draws them, of everything
            figures += write_together(results, out / "figures" / part, formats)
    if as_json:
        show.json(console, record)
        return
    show.ledger(console, parts.ledger if isinstance(parts, Pool) else parts.records[LEDGER])
    for study in studies:
        show.missing(console, study, name=study.signature.model if len(studies) > 1 else "")
    if under_way:
        show.line(console, f"{under_way} of {len(models)} models are under way in other processes.")
    for part in sorted(unfinished):
        show.line(console, f"{part}: points are under way in other processes.")
    files = options.written(out, figures=bool(figures))
    show.line(console, f"{files}; report: headcount report {shlex.quote(str(out))} --out report.html", dim=True)
