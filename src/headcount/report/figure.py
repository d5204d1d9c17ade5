"""Figures of records: drawn in publication quality, with a caption and the data behind them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount import journal
from headcount.errors import HeadcountError, RecordError, UnknownName, UsageError
from headcount.record import Record
from headcount.record.earlier import is_earlier
from headcount.record.results.ledger import Ledger
from headcount.record.results.pool import Pool
from headcount.record.results.specialisation import Specialisation
from headcount.registry import Registry
from headcount.report.data import data_name, data_path, measured_data
from headcount.report.palette import STYLE
from headcount.report.table import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Errors that a malformed record raises while it is shown; the rest of the page stays readable.
OUT_OF_SHAPE = (LookupError, ValueError, TypeError, ArithmeticError, HeadcountError)
STEP = ("removed", "share", "value", "low", "high")  # attributes of a step of pruning that figures export
FORMATS = ("png", "svg", "pdf")
_DATA = ("csv", "txt")  # endings of the numbers of a figure and of its caption
_SAME_EVERY_TIME: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


@dataclass(frozen=True)
class Drawing:
    """A drawn figure: the picture, its caption, and its data."""

    canvas: Canvas
    caption: str
    rows: Sequence[Mapping[str, Any]]  # one mapping per line of its CSV


@dataclass(frozen=True)
class Figure:
    """How one kind of figure is drawn from one or more records."""

    title: str
    shows: str  # the corresponding figure of the paper, or what it adds
    parts: tuple[str, ...]  # that a record must have; a.b is part b of part a
    draw: Callable[[Sequence[Record]], Drawing]
    reasons: Mapping[str, str] = field(default_factory=dict)  # part -> why it may be missing or empty
    obstacle: Callable[[Record], str | None] = lambda _: None  # why a record with all parts cannot be drawn

    def lacks(self, record: Record) -> str | None:
        """The reason why a record has no such figure; None if it has."""
        for name in self.parts:
            part = part_of(record, name)
            if part is None or (name in self.reasons and not part):
                reason = (part_of(record, "lacking") or {}).get(name)
                return str(reason or self.reasons.get(name) or f"the {record.study} record has no {name}")
        return self.obstacle(record)

    def fits(self, record: Record) -> bool:
        return self.lacks(record) is None


figures: Registry[Figure] = Registry("figure", "headcount.report.figures", "FIGURE")


def short_names(models: Iterable[str]) -> dict[str, str]:
    """A name for each model: the last part of its path or hub id, or as many parts as tell it from the others."""
    parts = {model: model.rstrip("/").split("/") for model in models}
    names = {}
    for model, path in parts.items():
        other_paths = [other for name, other in parts.items() if name != model]
        ends = (path[-count:] for count in range(1, len(path) + 1))
        end = next((end for end in ends if all(other[-len(end) :] != end for other in other_paths)), None)
        names[model] = "/".join(end) if end else model
    return names


def named(record: Record, records: Sequence[Record] = ()) -> str:
    """A short name of the model of a record, or of those that are pooled in it, for titles and legends.

    With the other `records` of a figure, as much of a path as tells their models apart, and the data of models that
    are there with several.
    """
    return f"{model_name(record, records)}{data_apart(record, records)}"


def model_name(record: Record, records: Sequence[Record] = ()) -> str:
    """The name without the data."""
    names = short_names(model for other in (record, *records) for model in _models(other))
    return " + ".join(names[model] for model in _models(record)) or "model"


def data_apart(record: Record, records: Sequence[Record]) -> str:
    """The data of a record to append to its name, if others of its model have other data: `, film test`."""
    name, model = data_name(record, records), record.signature.model
    other_data = {data_name(other, records) for other in records if other.signature.model == model} - {name, ""}
    return f", {name}" if name and other_data else ""


def origin(record: Record) -> dict[str, str]:
    """The first columns of a figure's data: the model, and the path of the data, else their hash."""
    return {"model": record.signature.model, "data": data_path(record) or measured_data(record)}


def judged(record: Record) -> dict[str, str]:
    """The first columns of a figure of a metric, which records of one model and data may differ in."""
    return {**origin(record), "metric": record.parts.metric}


def _models(record: Record) -> Sequence[str]:
    """The models that a record is about. The signature of a pool has all names in one."""
    parts, pooled = record.parts, tuple[str, ...]()
    if isinstance(parts, Pool):
        pooled = tuple(parts.studies)
    elif isinstance(parts, Specialisation | Ledger):
        pooled = tuple(parts.models)
    return pooled or (record.signature.model,)


def each(values: Iterable[str]) -> str:
    """The values of all panels for a caption, each once: a and b."""
    return listed(list(dict.fromkeys(values)))


def metrics(records: Sequence[Record]) -> str:
    return each(record.parts.metric for record in records)


def draw(name: str, records: Sequence[Record]) -> Drawing:
    """Draw a figure. Raises if a record lacks a part of it."""
    from matplotlib import rc_context

    figure = figures[name]
    for record in records:
        lacking = figure.lacks(record)
        if lacking is not None:
            fitting_names = [other for other, member in figures.items() if member.fits(record)]
            raise UsageError(
                f"The figure {name} needs {', '.join(figure.parts)}; not with this record ({record.study}): {lacking}. "
                f"Figures that can be drawn from it: {', '.join(fitting_names) or 'none'}."
            )
    with rc_context(STYLE):
        return figure.draw(records)


def fitting(record: Record) -> tuple[str, ...]:
    """Names of the figures that a record has the parts for."""
    return tuple(name for name, figure in figures.items() if figure.fits(record))


def write(name: str, records: Sequence[Record], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw a figure into a folder: NAME.png and so on, NAME.csv with its numbers, NAME.txt with its caption.

    Files of these names with other content stay as NAME.png.old and so on.
    """
    from matplotlib import rc_context

    for format_name in formats:
        if format_name not in FORMATS:
            raise UnknownName("format of figures", format_name, FORMATS)
    drawing = draw(name, records)
    with rc_context(STYLE):  # laid out once: in each format anew it takes longer, and each would depend on those before
        drawing.canvas.draw_without_rendering()
    drawing.canvas.set_layout_engine("none")
    numbers = _csv(drawing.rows)
    begun = not _is_drawn(folder, name)
    data = [  # before the pictures: by them the figure is known
        journal.write_text(folder / f"{name}.csv", numbers, replaces=lambda file: begun and _is_begun(file, numbers)),
        journal.write_text(folder / f"{name}.txt", drawing.caption + "\n", replaces=journal.nothing),
    ]
    written = []
    for format_name in formats:
        file = folder / f"{name}.{format_name}"
        with journal.new_file(file, replaces=journal.nothing) as fresh, rc_context(STYLE):
            drawing.canvas.savefig(
                fresh, format=format_name, bbox_inches="tight", metadata=_SAME_EVERY_TIME[format_name]
            )
        written.append(file)
    return [*written, *data]


def _is_drawn(folder: Path, name: str) -> bool:
    """Whether a folder has this figure: with its numbers and its caption, as no picture of the user has them."""
    return all((folder / f"{name}.{suffix}").is_file() for suffix in _DATA)


def _is_begun(file: Path, numbers: str) -> bool:
    """Whether a file is the table of a figure that was interrupted before its caption: it has the same columns."""
    if file.suffix != ".csv" or not file.is_file():
        return False
    columns = numbers.partition("\n")[0].encode()
    return file.read_bytes().partition(b"\n")[0] == columns


def _files(folder: Path, name: str, formats: Iterable[str] = FORMATS) -> list[Path]:
    return [folder / f"{name}.{suffix}" for suffix in (*formats, *_DATA)]


def write_all(record: Record, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Every figure that fits a record."""
    return write_together([record], folder, formats)


def write_together(records: Sequence[Record], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw every figure that fits some of these records (of one study on several models) from all that fit."""
    by_figure: dict[str, list[Record]] = {}
    for record in records:
        for name in fitting(record):
            by_figure.setdefault(name, []).append(record)
    return [file for name, drawn in by_figure.items() for file in write(name, drawn, folder, formats)]


def remove_outdated(folder: Path, file: Path, record: Record) -> None:
    """Remove the figures beside the file of a record that this record replaces, unless the numbers are the same.

    Only those that the replaced record has: others are the user's. The new ones may have other formats, or be fewer:
    those that stayed would show other numbers than the record. If that one stays as record.json.old, its figures stay
    in figures.old.
    """
    plain = record.to_plain()
    if not file.is_file() or journal.read_json(file).get("parts") == plain["parts"]:
        return
    replaced = _replaced(file)
    drawn = [name for name in fitting(replaced or record) if _is_drawn(folder, name)]
    outdated = [picture for name in drawn for picture in _files(folder, name) if picture.is_file()]
    if replaced is not None and is_earlier(file, plain):
        _remove_drawn(drawn, outdated, replaced)
        return
    ending = journal.free_name(file).name.removeprefix(file.name)
    for picture in outdated:
        aside = folder.with_name(f"{folder.name}{ending}")
        aside.mkdir(exist_ok=True)
        picture.rename(journal.free_name(aside / picture.name))


def _remove_drawn(names: Sequence[str], pictures: Sequence[Path], record: Record) -> None:
    """Remove the figures of a record. Those that are not as it is drawn, as the user has changed them, stay as .old."""
    with tempfile.TemporaryDirectory() as folder:
        formats = [name for name in FORMATS if any(picture.suffix == f".{name}" for picture in pictures)]
        for name in names:
            write(name, [record], Path(folder), formats)
        for picture in pictures:
            if journal.same_file(picture, Path(folder) / picture.name):
                picture.unlink()
            else:
                journal.set_aside(picture)


def _replaced(file: Path) -> Record | None:
    """The record in a file; None if this version cannot read it."""
    try:
        return Record.load(file)
    except RecordError:
        return None


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    import pandas as pd

    return str(pd.DataFrame(list(rows)).to_csv(index=False))


def picked(item: object, *names: str) -> dict[str, Any]:
    """Some attributes by name: a part of a row."""
    return {name: getattr(item, name) for name in names}


def part_of(record: Record, name: str) -> Any:
    """A part of a record, None if it has none; a.b is part b of part a."""
    part: Any = record.parts
    for key in name.split("."):
        part = part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
    return part
