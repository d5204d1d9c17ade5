"""Measured: the ledger of whole studies as a small file to commit, without paths: docs/results/claims.json.

python -m headcount.claims.measured "COMMAND" RECORD... > docs/results/claims.json

COMMAND wrote the records; each RECORD is of a whole study of one or several models, and all are pooled.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.pool import ledger_of, studies_of
from headcount.errors import UsageError
from headcount.record import Record
from headcount.record.results.ledger import Ledger


def measured(records: Sequence[Record], command: str) -> Record[Ledger]:
    """One ledger on all models of these records, which names them by the last part of their paths."""
    studies = [study for record in records for study in studies_of(record)]
    if not studies:
        raise UsageError("None of these records is from a whole study. Run headcount study all to make one.")
    if len({study.parts.name for study in studies}) > 1:
        raise UsageError("These records are from different whole studies. Give records of one study, such as all.")
    record = ledger_of(studies)
    names = {study.signature.model: study.signature.model.rstrip("/").rpartition("/")[2] for study in studies}

    def named(text: str) -> str:
        for path in sorted(names, key=len, reverse=True):
            text = text.replace(path, names[path])
        return text

    verdicts = tuple(replace(verdict, detail=named(verdict.detail)) for verdict in record.parts.verdicts)
    parts = replace(record.parts, verdicts=verdicts, models=tuple(map(named, record.parts.models)))
    signature = replace(
        record.signature,
        model=named(record.signature.model),
        arguments={"command": command, "study": studies[0].parts.name},
    )
    return Record(record.study, signature, parts)


if __name__ == "__main__":
    sys.stdout.write(measured([Record.load(path) for path in sys.argv[2:]], sys.argv[1]).to_json() + "\n")
