"""Data: which data a record is about, and names for them."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.record import Record
from headcount.record.result import MeasuredOn, Texts


def measured_data(record: Record) -> str:
    """The hash of the data that the numbers of a record are of; empty if unknown."""
    return str(record.signature.arguments.get("measured_on") or record.signature.data)


def known_data(record: Record) -> set[str]:
    """The hashes of all data of a record: those that heads were chosen on, and those that they were measured on."""
    return {record.signature.data, measured_data(record)} - {""}


def data_path(record: Record) -> str:
    """Where the data of a record are, and their split; empty if it does not say."""
    return _with_split(_path(record), _measured_on(record))


def _path(record: Record) -> str:
    return str(record.signature.arguments.get("data") or "").rstrip("/")


def _measured_on(record: Record) -> MeasuredOn | None:
    return getattr(record.parts, "measured_on", None)


def _with_split(path: str, texts: Texts | None) -> str:
    """A path, and the split if it does not end with it already. The split of a file is its name, or a half of it."""
    split = texts.split if texts and path else None
    if not split or path.endswith(f" {split}"):
        return path
    part = split.removesuffix(path.rpartition("/")[2]).removesuffix(" of ")
    if part in ("", "one half", "the other half"):
        return f"{path}, {part}" if part else path
    return f"{path} {split}"


def data_names(records: Sequence[Record]) -> dict[str, str]:
    """A name of each data set by its hash: the end of its path where a record has it, else the start of the hash."""
    paths: dict[str, str] = {}
    for record in records:
        path, measured = _path(record).split("/")[-1], _measured_on(record)
        chosen_on = measured.chosen_on[-1] if measured and measured.chosen_on else None
        for data, texts in ((measured_data(record), measured), (record.signature.data, chosen_on)):
            if data and path:
                paths.setdefault(data, _with_split(path, texts))
    hashes = dict.fromkeys(data for record in records for data in sorted(known_data(record)))
    names = [paths.get(data, "data") for data in hashes]
    return {
        data: f"{name} {data[:6]}" if data not in paths or names.count(name) > 1 else name
        for data, name in zip(hashes, names, strict=True)
    }


def data_name(record: Record, records: Sequence[Record]) -> str:
    """The name of the data of a record among others; empty if it does not say what they are."""
    return data_names([record, *records]).get(measured_data(record)) or data_path(record).split("/")[-1]
