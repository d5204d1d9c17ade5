"""Records inside records: what a whole study, or a pool of them, is made of."""

from __future__ import annotations

from collections.abc import Iterator

from headcount.record.record import Record
from headcount.record.results.combined import Combined
from headcount.record.results.pool import Pool


def flat(record: Record) -> Iterator[Record]:
    """A record, or those that it is made of."""
    if isinstance(record.parts, Combined):
        inner = list(record.parts.records.values())
    elif isinstance(record.parts, Pool):
        inner = [*record.parts.studies.values(), record.parts.ledger]
    else:
        yield record
        return
    for part in inner:
        yield from flat(part)
