"""Subjects: records grouped by model and data, so that models, data sets or epochs can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from posixpath import normpath
from typing import Any, TypeVar

from headcount.record import Record
from headcount.record.codec import encode
from headcount.record.flat import flat
from headcount.record.results.ablate import Ablation
from headcount.record.results.curves import Curves
from headcount.record.results.pool import Pool
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.data import data_names, known_data, measured_data
from headcount.report.figure import named, part_of
from headcount.report.joined import joined

Parts = TypeVar("Parts")
_MANY = ("score", "prune", "attention", "ledger")  # several per subject, distinguished by their arguments
_BY = {"tradeoff": "pruned"}  # and of these, distinguished by this part
_NO_SETTINGS = ("data", "measured_on", "texts", "inputs")  # data, and the hash of all that decides
_JUDGED = (Ablation, Curves, Tradeoff)  # qualities without some heads, which the page shows beside each other


@dataclass
class Subject:
    """One model on one data set, with all its records."""

    label: str
    records: list[Record] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # part of a study -> why it could not be measured

    def first(self, kind: type[Parts]) -> Parts | None:
        """The result of this kind, None if there is none."""
        return next((record.parts for record in self.records if isinstance(record.parts, kind)), None)

    @property
    def weights(self) -> str:
        """The hash of the model's weights, empty if unknown."""
        return next((record.signature.weights for record in self.records if record.signature.weights), "")

    @property
    def data(self) -> str:
        """The hash of the data that heads are judged on, else of the first that are known; empty if none are."""
        return next((data for data in map(measured_data, self._judged_first) if data), "")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments of the first record that heads are judged by, else of the first; empty without records."""
        return next((record.signature.arguments for record in self._judged_first), {})

    @property
    def _judged_first(self) -> list[Record]:
        return sorted(self.records, key=lambda record: not isinstance(record.parts, _JUDGED))

    def of(self, *studies: str) -> list[Record]:
        return [record for record in self.records if record.study in studies]


def _split(record: Record) -> list[Record]:
    """The studies of a pool, with its ledger in the first; any other record unchanged."""
    if not isinstance(record.parts, Pool):
        return [record]
    head, *tail = record.parts.studies.values()
    with_ledger = replace(head.parts, records={**head.parts.records, "ledger": record.parts.ledger})
    return [replace(head, parts=with_ledger), *tail]


@dataclass
class _Bundle:
    """Records that stay together, with the places where they were given."""

    at: int  # place of the first of them: bundles are in this order
    model: str
    records: list[Record]
    missing: dict[str, str] = field(default_factory=dict)

    def takes(self, other: _Bundle) -> bool:
        """Whether records of another bundle may be of the same subject: of its model, and none that it has already."""
        return (
            self.model == other.model
            and not _slots(self.records) & _slots(other.records)
            and _of_one_model(self.records, other.records)
            and _judged_alike(self.records, other.records)
        )

    def shares_data(self, other: _Bundle) -> bool:
        data, other_data = (
            {data for record in subject.records for data in known_data(record)} for subject in (self, other)
        )
        return bool(data & other_data)

    def add(self, other: _Bundle) -> None:
        self.records += other.records
        self.missing |= other.missing


def subjects(all_records: Sequence[Record]) -> list[Subject]:
    """Group records by subject. Combined records stay together; a record joins a subject of its model that lacks it.

    A model is known by its name and, where records have hashes of its weights, by these. Of several subjects that lack
    a record, it joins one that shares its data, in whatever order they are given.
    """
    records = [part for record in all_records for part in _split(record)]
    combined: list[_Bundle] = []
    loose: list[_Bundle] = []
    for at, record in enumerate(records):
        parts = list(flat(record))
        is_combined = parts != [record]
        missing = dict(record.parts.missing) if is_combined else {}
        (combined if is_combined else loose).append(_Bundle(at, _folder(record), parts, missing))
    bundles = _joined_where(_joined_where([*combined, *loose], _Bundle.shares_data), lambda *_: True)
    ordered = [
        Subject(named(records[bundle.at]), bundle.records, bundle.missing) for bundle in sorted(bundles, key=_place)
    ]
    for subject in ordered:
        comparison = joined(subject.records)
        subject.records += [comparison] if comparison else []
    _tell_apart(ordered)
    return ordered


def _joined_where(bundles: Sequence[_Bundle], related: Callable[[_Bundle, _Bundle], bool]) -> list[_Bundle]:
    """Bundles with those added to them that they take and are related to; each to the first that does."""
    homes: list[_Bundle] = []
    for bundle in bundles:
        home = next((home for home in sorted(homes, key=_place) if home.takes(bundle) and related(home, bundle)), None)
        if home is None:
            homes.append(bundle)
        else:
            home.add(bundle)
    return homes


def _place(bundle: _Bundle) -> int:
    return bundle.at


def _folder(record: Record) -> str:
    """The model of a record, spelled the same for `model`, `model/` and `./model`."""
    return normpath(record.signature.model)


def _of_one_model(records: Sequence[Record], other_records: Sequence[Record]) -> bool:
    """Whether records of the same name may be of the same weights: some hash is the same, or unknown."""
    hashes, more = ({record.signature.weights for record in side} - {""} for side in (records, other_records))
    return not hashes or not more or bool(hashes & more)


def _judged_alike(records: Sequence[Record], other_records: Sequence[Record]) -> bool:
    """Whether the qualities without heads may be of the same data: some hash is the same, or unknown."""
    data, more = (
        {measured_data(record) for record in side if isinstance(record.parts, _JUDGED)} - {""}
        for side in (records, other_records)
    )
    return not data or not more or bool(data & more)


def _slots(records: Sequence[Record]) -> set[str]:
    return {_slot(record) for record in records}


def _slot(record: Record) -> str:
    """The key of which a subject has one record: a second one belongs to another subject."""
    if record.study in _BY:
        return json.dumps([record.study, part_of(record, _BY[record.study])])
    if record.study not in _MANY:
        return record.study
    arguments = {name: value for name, value in record.signature.arguments.items() if name != "data"}
    return json.dumps([record.study, part_of(record, "method"), encode(arguments)], sort_keys=True)


def _tell_apart(all_subjects: Sequence[Subject]) -> None:
    """Make labels unique: by name, else by the full path, else by differences of the signature, else by number."""
    names = data_names([record for subject in all_subjects for record in subject.records])
    for spell in (_by_path, partial(_by_signature, names), _by_number):
        groups: dict[str, list[Subject]] = {}
        for subject in all_subjects:
            groups.setdefault(subject.label, []).append(subject)
        for group in groups.values():
            labels = spell(group)
            if len(set(labels)) > 1:
                for subject, label in zip(group, labels, strict=True):
                    subject.label = label


def _by_path(group: Sequence[Subject]) -> list[str]:
    return [(subject.records[0].signature.model if subject.records else "") or subject.label for subject in group]


def _by_signature(names: Mapping[str, str], group: Sequence[Subject]) -> list[str]:
    """Labels with the hash of the weights, the name of the data, and settings, where these differ."""
    weights = [f"weights {subject.weights[:6]}" if subject.weights else "" for subject in group]
    data = [names.get(subject.data, "") for subject in group]
    different = [marks for marks in (weights, data, *_settings(names, group)) if len(set(marks)) > 1]
    marks_by_subject = [", ".join(filter(None, marks)) for marks in zip(*different, strict=True)] or [""] * len(group)
    return [
        f"{subject.label} ({marks})" if marks else subject.label
        for subject, marks in zip(group, marks_by_subject, strict=True)
    ]


def _settings(names: Mapping[str, str], group: Sequence[Subject]) -> Iterator[list[str]]:
    """For each argument that the records of all subjects have: its value in each of them, such as `metric f1`."""
    settings = [subject.settings for subject in group]
    for name in settings[0]:
        if all(name in other for other in settings) and name not in _NO_SETTINGS:
            yield [f"{name} {names.get(str(other[name]), _short(other[name]))}" for other in settings]


def _short(value: object) -> object:
    """A value; a hash of data that have no name is as short as elsewhere in labels."""
    return value[:6] if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{12,}", value) else value


def _by_number(group: Sequence[Subject]) -> list[str]:
    return [f"{subject.label} #{number}" for number, subject in enumerate(group, 1)]
