"""Records inside records: the parts of a whole study, or of a pool of studies."""

from __future__ import annotations

from collections.abc import Iterator

from headcount.record.record import Record
from headcount.record.results.combined import Combined
from headcount.record.results.pool import Pool


def flat(record: Record) -> Iterator[Record]:
    """A record, or the records that it contains."""
    if isinstance(record.parts, Combined):
        inner = list(record.parts.records.values())
    elif isinstance(record.parts, Pool):
        inner = [*record.parts.studies.values(), record.parts.ledger]
    else:
        yield record
        return
    for part in inner:
        yield from flat(part)
