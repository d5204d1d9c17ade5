"""Pool: whole studies of several models with one ledger, so that intervals of claims include models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.ledger import ledger
from headcount.claims.studied import StudiedModel, joined
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.results.pool import Pool

LEDGER = "ledger"


def studied_papers(name: str) -> list[str]:
    """The papers that a whole study of this name is about."""
    return [paper for paper in ("voita2019", "michel2019") if name in (paper, "all")]


def ledger_of(studies: Sequence[Record[Combined]]) -> Record:
    """The claims of the papers, decided on whole studies of the same name."""
    name, signatures = studies[0].parts.name, [study.signature for study in studies]
    models = joined([StudiedModel.of(study) for study in studies])
    return Record(
        LEDGER,
        Signature(
            " ".join(dict.fromkeys(signature.model for signature in signatures)),
            arguments={**signatures[0].arguments, "study": name},
            time=signatures[0].time,
        ),
        ledger(models, studied_papers(name)),
    )


def pool(studies: Sequence[Record[Combined]]) -> Record[Pool]:
    """One record of whole studies of the same name, with one ledger on all models instead of one each."""
    ledger_record = ledger_of(studies)
    members = {study.signature.model: _without_ledger(study) for study in studies}
    return Record("pool", ledger_record.signature, Pool(studies[0].parts.name, members, ledger_record))


def pooled_records(records: Sequence[Record]) -> list[Record]:
    """The same records, with whole studies of different models pooled if name, task and metric are the same."""
    loose = [record for record in records if not studies_of(record)]
    groups: dict[str, list[Record[Combined]]] = {}
    for study in (study for record in records for study in studies_of(record)):
        settings = study.parts.settings
        groups.setdefault(f"{study.parts.name} {settings.get('task')} {settings.get('metric')}", []).append(study)
    result: list[Record] = []
    for studies in groups.values():
        models = {study.signature.model for study in studies}
        result += [pool(studies)] if 1 < len(models) == len(studies) else studies
    return [*result, *loose]


def studies_of(record: Record) -> list[Record[Combined]]:
    """The whole studies that a record is, or holds."""
    if isinstance(record.parts, Pool):
        return list(record.parts.studies.values())
    return [record] if isinstance(record.parts, Combined) and studied_papers(record.parts.name) else []


def _without_ledger(study: Record[Combined]) -> Record[Combined]:
    records = {part: record for part, record in study.parts.records.items() if part != LEDGER}
    return replace(study, parts=replace(study.parts, records=records))
