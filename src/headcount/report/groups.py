"""Groups: records of several models measured on the same data, to be drawn as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from headcount.record import Record
from headcount.report.figure import named


def grouped(records: Sequence[Record], alike: Callable[[Record], Hashable] = lambda _: None) -> list[list[Record]]:
    """Groups of similar records of the same data, in order of their first record; unknown data is not grouped."""
    groups: dict[Hashable, list[Record]] = {}
    for number, record in enumerate(records):
        data = record.signature.data
        groups.setdefault((data, alike(record)) if data else number, []).append(record)
    return [group for together in groups.values() for group in _one_of_each_model(together)]


def _one_of_each_model(records: list[Record]) -> list[list[Record]]:
    """One group if every model occurs once, else one per record: a model is compared with itself, not averaged.

    Models are told apart by the hash of their weights: a copy of a model is no other model.
    """
    models = {record.signature.weights or record.signature.model.rstrip("/") for record in records}
    return [records] if len(models) == len(records) else [[record] for record in records]


def group_name(group: Sequence[Record], records: Sequence[Record]) -> str:
    """The name of the model, or the common prefix of several names and their number, told from other `records`."""
    names = [named(record, records) for record in group]
    if len(names) == 1:
        return names[0]
    lowest, highest = min(names), max(names)
    length = next(
        (index for index, pair in enumerate(zip(lowest, highest, strict=False)) if len(set(pair)) > 1), len(lowest)
    )
    return f"{lowest[:length].rstrip('-_./ ')} ({len(names)} models)".strip()
