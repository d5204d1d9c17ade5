"""Groups: records of several models that were measured on the same data, to be drawn as one with models as the runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from headcount.record import Record
from headcount.report.figure import named


def grouped(records: Sequence[Record], alike: Callable[[Record], Hashable] = lambda _: None) -> list[list[Record]]:
    """Records of the same data that are alike, in the order of the first of each; unknown data stay by themselves."""
    groups: dict[Hashable, list[Record]] = {}
    for number, record in enumerate(records):
        data = record.signature.data
        groups.setdefault((data, alike(record)) if data else number, []).append(record)
    return [group for together in groups.values() for group in _one_of_each_model(together)]


def _one_of_each_model(records: list[Record]) -> list[list[Record]]:
    """A model that comes twice is compared with itself, not averaged."""
    models = {record.signature.model for record in records}
    return [records] if len(models) == len(records) else [[record] for record in records]


def group_name(records: Sequence[Record]) -> str:
    """The name of the model, or what the names of several begin with and how many they are."""
    names = [named(record) for record in records]
    if len(names) == 1:
        return names[0]
    first, last = min(names), max(names)
    length = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    return f"{first[:length].rstrip('-_. ')} ({len(names)} models)".strip()
