"""Subjects: records grouped by model and data, so that models, data sets or epochs can be compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from posixpath import normpath
from typing import TypeVar

from headcount.record import Record, Signature
from headcount.record.codec import encode
from headcount.record.flat import flat
from headcount.record.results.pool import Pool
from headcount.report.figure import named, part_of
from headcount.report.joined import joined

Parts = TypeVar("Parts")
_MANY = ("score", "prune", "attention", "ledger")  # several per subject, distinguished by their arguments
_BY = {"tradeoff": "pruned"}  # and of these, distinguished by this part


@dataclass
class Subject:
    """One model on one data set, with all its records."""

    label: str
    records: list[Record] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # part of a study -> why it could not be measured

    def first(self, kind: type[Parts]) -> Parts | None:
        """The result of this kind, None if there is none."""
        return next((record.parts for record in self.records if isinstance(record.parts, kind)), None)

    def of(self, *studies: str) -> list[Record]:
        return [record for record in self.records if record.study in studies]


def _split(record: Record) -> list[Record]:
    """The studies of a pool, with its ledger in the first; any other record unchanged."""
    if not isinstance(record.parts, Pool):
        return [record]
    head, *tail = record.parts.studies.values()
    with_ledger = replace(head.parts, records={**head.parts.records, "ledger": record.parts.ledger})
    return [replace(head, parts=with_ledger), *tail]


def subjects(all_records: Sequence[Record]) -> list[Subject]:
    """Group records by subject. Combined records stay together; a record joins a subject of its model that lacks it.

    A model is known by its name and, where records have hashes of its weights, by these.
    """
    records = [part for record in all_records for part in _split(record)]
    groups = [list(flat(record)) for record in records]
    combined = [index for index, record in enumerate(records) if groups[index] != [record]]
    loose = [index for index in range(len(records)) if index not in combined]
    by_index: dict[int, Subject] = {}  # by the place of its first record
    used_labels: dict[int, set[str]] = {}
    for index in (*combined, *loose):
        folder, brought = _folder(records[index]), {_slot(part) for part in groups[index]}
        fitting = (
            at
            for at in sorted(by_index)
            if _folder(records[at]) == folder
            and not used_labels[at] & brought
            and _of_one_model(by_index[at].records, groups[index])
        )
        home = next(fitting, index)
        subject = by_index.setdefault(home, Subject(named(records[index])))
        subject.records += groups[index]
        if index in combined:
            subject.missing |= records[index].parts.missing
        used_labels.setdefault(home, set()).update(brought)
    ordered = [by_index[index] for index in sorted(by_index)]
    for subject in ordered:
        comparison = joined(subject.records)
        subject.records += [comparison] if comparison else []
    _tell_apart(ordered)
    return ordered


def _folder(record: Record) -> str:
    """The model of a record, spelled the same for `model`, `model/` and `./model`."""
    return normpath(record.signature.model)


def _of_one_model(some: Sequence[Record], others: Sequence[Record]) -> bool:
    """Whether records of the same name may be of the same weights: some hash is the same, or unknown."""
    hashes, more = ({record.signature.weights for record in records} - {""} for records in (some, others))
    return not hashes or not more or bool(hashes & more)


def _slot(record: Record) -> str:
    """The key of which a subject has one record: a second one belongs to another subject."""
    if record.study in _BY:
        return json.dumps([record.study, part_of(record, _BY[record.study])])
    if record.study not in _MANY:
        return record.study
    return json.dumps([record.study, part_of(record, "method"), encode(record.signature.arguments)], sort_keys=True)


def _tell_apart(all_subjects: Sequence[Subject]) -> None:
    """Make labels unique: by name, else by the full path, else by differences of the signature, else by number."""
    for spell in (_by_path, _by_signature, _by_number):
        labels = [subject.label for subject in all_subjects]
        if len(set(labels)) == len(labels):
            return
        for index, subject in enumerate(all_subjects):
            if labels.count(subject.label) > 1 or labels.count(labels[index]) > 1:
                subject.label = spell(subject, index)


def _by_path(subject: Subject, _: int) -> str:
    return (subject.records[0].signature.model if subject.records else "") or subject.label


def _by_signature(subject: Subject, _: int) -> str:
    signature = subject.records[0].signature if subject.records else Signature()
    marks = [f"{what} {text[:6]}" for what, text in (("weights", signature.weights), ("data", signature.data)) if text]
    return f"{subject.label} ({', '.join(marks)})" if marks else subject.label


def _by_number(subject: Subject, index: int) -> str:
    return f"{subject.label} #{index + 1}"
