"""Measured: the ledger of whole studies as a small file to commit, without paths: docs/results/claims.json.

python -m headcount.claims.measured "COMMAND" RECORD... [--earlier LEDGER] > docs/results/claims.json

COMMAND wrote the records; each RECORD is of a whole study of one or several models, and all are pooled. Claims that
they do not measure keep their number of LEDGER, and are open.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.pool import ledger_of, studies_of
from headcount.errors import UsageError
from headcount.record import Record
from headcount.record.results.ledger import Ledger, Verdict

_AGAIN = "not measured again"


def measured(records: Sequence[Record], command: str, earlier: Record[Ledger] | None = None) -> Record[Ledger]:
    """One ledger on all models of these records, which names them by the last part of their paths.

    earlier: a ledger whose numbers stay for claims that these records do not measure.
    """
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

    verdicts = tuple(
        _kept(verdict, earlier) or replace(verdict, detail=named(verdict.detail)) for verdict in record.parts.verdicts
    )
    parts = replace(record.parts, verdicts=verdicts, models=tuple(map(named, record.parts.models)))
    if earlier is not None:
        numbers = ", ".join(verdict.number for verdict in record.parts.verdicts if _kept(verdict, earlier))
        command += f"; {numbers} as before: {earlier.signature.arguments.get('command', '')}" if numbers else ""
    signature = replace(
        record.signature,
        model=named(record.signature.model),
        arguments={"command": command, "study": studies[0].parts.name},
    )
    return Record(record.study, signature, parts)


def _kept(verdict: Verdict, earlier: Record[Ledger] | None) -> Verdict | None:
    """The number of an earlier ledger for a claim that was not measured again; open, as nothing confirms it."""
    if verdict.models or earlier is None:
        return None
    before = {row.number: row for row in earlier.parts.verdicts if row.models}.get(verdict.number)
    if before is None:
        return None
    since = [] if _AGAIN in before.detail else [f"of {earlier.signature.time[:10]}, {_AGAIN}"]
    return replace(before, holds=None, detail="; ".join([*since, *filter(None, [before.detail])]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pool whole studies into one ledger, written as JSON.")
    parser.add_argument("command", help="command that wrote the records")
    parser.add_argument("records", nargs="+", help="record.json of a whole study")
    parser.add_argument("--earlier", help="ledger whose numbers stay for claims that the records do not measure")
    arguments = parser.parse_args()
    ledger = Record.load(arguments.earlier) if arguments.earlier else None
    sys.stdout.write(
        measured([Record.load(path) for path in arguments.records], arguments.command, ledger).to_json() + "\n"
    )
