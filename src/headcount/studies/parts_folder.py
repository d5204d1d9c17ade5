"""A folder of parts: each is run once and saved, and the same call resumes where it was interrupted.

DIR/settings.json    all settings; a folder is resumed only with the settings it was started with
DIR/subject.json     and only with the same weights and the same texts to choose and measure on
DIR/parts/NAME.json  the record of each part
DIR/record.json      all of them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from headcount import journal
from headcount.errors import FolderError, HeadcountError, UsageError
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.results.tradeoff import Tradeoff
from headcount.studies.parts import Part
from headcount.studies.subject import StudySubject


def run_parts(
    name: str,
    subject: StudySubject,
    makers: Mapping[str, Part],
    out: Path,
    *,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Run parts in order and save each in the folder."""
    if not (out / "settings.json").is_file() and journal.contents(out):
        raise UsageError(f"{out} holds something else already; give a new folder.")
    with journal.reserved(out, shared=True):  # processes of the same command share the points of the trade-off
        return _run(name, subject, makers, out, refresh)


def _run(
    name: str, subject: StudySubject, makers: Mapping[str, Part], out: Path, refresh: Callable[[Record[Combined]], None]
) -> Record[Combined]:
    settings = subject.settings
    unfinished = not all((out / "parts" / f"{part}.json").is_file() for part in makers)
    fingerprints = subject.fingerprints() if unfinished else {}  # wrong data is reported at once, not for each part
    journal.claim(out, "settings.json", asdict(settings))
    if unfinished:
        journal.claim(out, "subject.json", fingerprints)
    signature = Signature(settings.model, arguments={"data": settings.source.data})
    combined = Combined(name, {}, {}, json.loads(json.dumps(asdict(settings))))
    for part, maker in makers.items():
        file = out / "parts" / f"{part}.json"
        try:
            part_record = Record.load(file) if file.is_file() else maker(subject)
        except FolderError:  # nothing can be written, not only this part
            raise
        except HeadcountError as error:
            subject.missing[part] = str(error)
            combined = replace(combined, missing={**combined.missing, part: str(error)})
        else:
            if not file.is_file() and not _unfinished(part_record):
                part_record.save(file)
            subject.finished_parts[part] = part_record
            combined = replace(combined, records={**combined.records, part: part_record})
        record = Record("combined", signature, combined)
        record.save(out / "record.json")
        refresh(record)
    return Record("combined", signature, combined)


def _unfinished(record: Record) -> bool:
    """Whether other processes work on the rest of a trade-off."""
    return isinstance(record.parts, Tradeoff) and record.parts.unfinished > 0
