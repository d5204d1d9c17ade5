"""A folder of parts: each is run once and kept, and the same call goes on where it was interrupted.

DIR/settings.json    what decides the numbers; a folder goes on only with the settings it was begun with
DIR/subject.json     and only on the weights, and the texts to choose and measure on, it was begun with
DIR/parts/NAME.json  the record of each part
DIR/record.json      all of them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headcount import journal
from headcount.errors import FolderError, HeadcountError, UsageError
from headcount.record import Record, Signature
from headcount.studies.parts import Part
from headcount.studies.subject import Subject


def run_parts(
    study: str,
    subject: Subject,
    makers: Mapping[str, Part],
    out: Path,
    *,
    refresh: Callable[[Record], None] = lambda _: None,
    **further: Any,
) -> Record:
    """Run parts in order and keep each in the folder; further: other parts of the combined record."""
    if not (out / "settings.json").is_file() and journal.contents(out):
        raise UsageError(f"{out} holds something else already; give a new folder.")
    with journal.reserved(out, shared=True):  # processes begun alike share the points of the trade-off
        return _run(study, subject, makers, out, refresh, further)


def _run(
    study: str,
    subject: Subject,
    makers: Mapping[str, Part],
    out: Path,
    refresh: Callable[[Record], None],
    further: Mapping[str, Any],
) -> Record:
    settings = subject.settings
    unfinished = not all((out / "parts" / f"{part}.json").is_file() for part in makers)
    fingerprints = subject.fingerprints() if unfinished else {}  # wrong data is said at once, not for each part
    journal.claim(out, "settings.json", asdict(settings))
    if unfinished:
        journal.claim(out, "subject.json", fingerprints)
    record = Record(study, Signature(settings.model, arguments={"data": settings.source.data}), {"records": {}})
    record.parts |= {"missing": {}, **further, "settings": json.loads(json.dumps(asdict(settings)))}
    for part, maker in makers.items():
        file = out / "parts" / f"{part}.json"
        try:
            part_record = Record.load(file) if file.is_file() else maker(subject)
        except FolderError:  # not this part alone cannot be written
            raise
        except HeadcountError as error:
            subject.missing[part] = record.parts["missing"][part] = str(error)
        else:
            if not file.is_file() and not part_record.parts.get("missing"):  # other processes are at work on the rest
                part_record.save(file)
            subject.done[part] = part_record
            record.parts["records"][part] = part_record.to_plain()
        record.save(out / "record.json")
        refresh(record)
    return record
