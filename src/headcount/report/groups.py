"""Groups: records of several models measured on the same data, to be drawn as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from os.path import commonprefix

from headcount.record import Record
from headcount.record.shape import shape_of
from headcount.record.training import training_of
from headcount.report.figure import data_apart, model_name, named


def grouped(records: Sequence[Record], alike: Callable[[Record], Hashable] = lambda _: None) -> list[list[Record]]:
    """Groups of records whose models are alike: of the same data and shape, with names that differ by a number alone.

    These are draws from one population, as in claims of several models. Other models are side by side, and so are
    those of unknown data. alike: what records of a group share besides.
    """
    groups: dict[Hashable, list[Record]] = {}
    for number, record in enumerate(records):
        data = record.signature.data
        population = (data, shape_of([record.parts]), _without_seed(record.signature.model), alike(record))
        groups.setdefault(population if data else number, []).append(record)
    return [group for together in groups.values() for group in _one_of_each_model(together)]


def _one_of_each_model(records: list[Record]) -> list[list[Record]]:
    """One group if every model occurs once, else one per record: a model is compared with itself, not averaged.

    Models are told apart by the hash of their weights: a copy of a model is no other model.
    """
    models = {record.signature.weights or record.signature.model.rstrip("/") for record in records}
    return [records] if len(models) == len(records) else [[record] for record in records]


def _without_seed(model: str) -> str:
    """The name of a model without numbers. Checkpoints and epochs of one training are no draws: they keep theirs."""
    run, _ = training_of(model)
    return re.sub(r"(?<![\d.])\d+", "#", run) + model.rstrip("/")[len(run) :]


def group_name(group: Sequence[Record], records: Sequence[Record]) -> str:
    """The name of the model, or what several names begin with and their number, told from other `records`."""
    names = [model_name(record, records) for record in group]
    if len(names) == 1:
        return named(group[0], records)
    start = _common_start(names) or _common_start([record.signature.model for record in group]) or names[0]
    return f"{start} ({len(names)} models){data_apart(group[0], records)}"


def _common_start(names: Sequence[str]) -> str:
    return commonprefix(names).rstrip("-_./ ")  # noqa: RUF071  # of names, `m` of m-0 and m-1
