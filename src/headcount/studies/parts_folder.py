"""A folder of parts: each is run once and saved, and the same call resumes where it was interrupted.

DIR/settings.json       all settings; a folder is resumed only with the settings it was started with
DIR/subject.json        and only with the same weights and the same texts to choose and measure on
DIR/TEXTS.json          and the same further texts that its parts read: training, sentences, frequencies
DIR/tokens.json         and only with the same tokenizer
DIR/configuration.json  and with the same configuration of the model
DIR/parts/NAME.json     the record of each part
DIR/record.json         all of them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from headcount import journal
from headcount.claims.pool import LEDGER
from headcount.errors import FolderError, HeadcountError, RecordError, UsageError
from headcount.record import Record, Signature, displayed
from headcount.record.results.combined import Combined
from headcount.record.results.tradeoff import Tradeoff
from headcount.record.shape import shape_of
from headcount.studies.parts import READS, Part
from headcount.studies.subject import StudySubject
from headcount.tasks.inputs import claim_inputs


def run_parts(
    name: str,
    subject: StudySubject,
    makers: Mapping[str, Part],
    out: Path,
    *,
    wanted: Collection[str] | None = None,
    outdated: Collection[str] = (),
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
    complete: Callable[[Record[Combined]], Record[Combined]] = lambda record: record,
) -> Record[Combined]:
    """Run parts in order and save each in the folder. complete adds what is computed from all parts.

    wanted: parts to run, by default all. The record also has the other parts that an earlier run finished.
    outdated: finished parts to run again.
    """
    if not (out / "settings.json").is_file() and journal.contents(out):
        raise UsageError(f"{out} holds something else already; give a new folder.")
    with journal.reserved(out, shared=True):  # processes of the same command share the points of the trade-off
        record = _run(name, subject, makers, out, makers if wanted is None else wanted, outdated, refresh)
        return _save_last(record, makers, out, complete)


def _run(
    name: str,
    subject: StudySubject,
    makers: Mapping[str, Part],
    out: Path,
    wanted: Collection[str],
    outdated: Collection[str],
    refresh: Callable[[Record[Combined]], None],
) -> Record[Combined]:
    settings, earlier = subject.settings, _earlier(out)
    _check_study(name, makers, earlier, out)
    _check_files(makers, out)
    fingerprints = subject.fingerprints()  # also of a finished study: its numbers may be of other weights or texts
    journal.claim(out, "settings.json", asdict(settings))
    journal.claim(out, "subject.json", fingerprints)
    _claim_texts(subject, [part for part in makers if part in wanted or _file(out, part).is_file()], out)
    claim_inputs(out, subject.model, subject.choosing)
    for part in outdated:  # only now: a command that is refused removes nothing
        journal.set_aside(_file(out, part))
    signature = Signature(settings.model, arguments={"data": settings.source.data})
    missing = {part: reason for part, reason in earlier.missing.items() if part in makers and part not in wanted}
    combined = Combined(name, {}, missing, json.loads(json.dumps(asdict(settings))))
    saved_parts = {part for part, record in earlier.records.items() if not is_unfinished(record)}
    for part, maker in makers.items():
        file = _file(out, part)
        if part not in wanted and not file.is_file():
            continue
        try:
            part_record = Record.load(file) if file.is_file() else _with_path(maker(subject), subject)
        except FolderError:  # nothing can be written, not only this part
            raise
        except HeadcountError as error:
            subject.missing[part] = str(error)
            combined = replace(combined, missing={**combined.missing, part: str(error)})
        else:
            if not file.is_file() and not is_unfinished(part_record):
                part_record.save(file)
            subject.finished_parts[part] = part_record
            combined = replace(combined, records={**combined.records, part: part_record})
        record = Record("combined", signature, combined)
        if not set(combined.records) <= saved_parts:  # a record with more parts, of an earlier run, stays until the end
            _save(record, out)
        refresh(record)
    return Record("combined", signature, combined)


def _with_path(record: Record, subject: StudySubject) -> Record:
    """A part with the path and split of its data, by which reports name them."""
    splits = {task.fingerprint: task.split for task in (subject.choosing, subject.measuring)}
    return record.on_data(subject.settings.source.data, splits.get(record.signature.data))


def _claim_texts(subject: StudySubject, parts: Iterable[str], out: Path) -> None:
    """Write the hashes of the texts that some of the parts read, or raise if they read others before.

    Each text has a file of its own, written when a part first reads it.
    """
    for name in dict.fromkeys(name for part in parts for name in READS.get(part, ())):
        text_hash = subject.text_hash(name)
        if text_hash is not None:
            journal.claim(out, f"{name}.json", {name: text_hash})


def _save_last(
    record: Record[Combined],
    makers: Mapping[str, Part],
    out: Path,
    complete: Callable[[Record[Combined]], Record[Combined]],
) -> Record[Combined]:
    """Save the record with the parts as their files have them, because other processes may have finished some.

    If a file changes while the record is written, it is written again. If one changes later, the process that changed
    it writes its record later still.
    """
    while True:
        versions = _versions(out, makers)
        from_files = {part: Record.load(_file(out, part)) for part in versions}
        by_part = {**record.parts.records, **from_files}
        missing = {part: reason for part, reason in record.parts.missing.items() if part not in from_files}
        records = {part: by_part[part] for part in makers if part in by_part}
        last = complete(replace(record, parts=replace(record.parts, records=records, missing=missing)))
        _save(last, out)
        if _versions(out, makers) == versions:
            return last


def _save(record: Record[Combined], out: Path) -> None:
    """Save the record of the folder. One of the same settings is of another process, or of an earlier state."""
    journal.write_json(
        out / "record.json", record.to_plain(), replaces=lambda _: _earlier(out).settings == record.parts.settings
    )


def save_part(record: Record, out: Path, part: str) -> None:
    """Save a part of the folder that is computed from others, anew whenever these are more."""
    journal.write_json(_file(out, part), record.to_plain())


def _file(out: Path, part: str) -> Path:
    return out / "parts" / f"{part}.json"


def _versions(out: Path, parts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Part -> what tells its file from the one that replaces it, for every part that has a file."""
    statuses = {part: file.stat() for part in parts if (file := _file(out, part)).is_file()}
    return {part: (status.st_ino, status.st_mtime_ns) for part, status in statuses.items()}


def _earlier(out: Path) -> Combined:
    """The record of an earlier run, or of another process; an empty one if there is none."""
    try:
        combined = Record.load(out / "record.json").parts
    except RecordError:  # there is none, or it is damaged
        combined = None
    return combined if isinstance(combined, Combined) else Combined("", {}, {}, {})


def _check_study(name: str, makers: Mapping[str, Part], earlier: Combined, out: Path) -> None:
    """Raise if a folder has finished parts of another study, which its record would lose."""
    older_parts = [
        part for part in earlier.records if part not in makers and _file(out, part).is_file() and part != LEDGER
    ]
    if older_parts:
        raise UsageError(
            f"{out} contains the study {earlier.name} with {', '.join(older_parts)}, which {name} does not have. "
            "Give a new folder."
        )


def _check_files(makers: Iterable[str], out: Path) -> None:
    """Raise if the file of a finished part is damaged: the record at the end of a study needs every part.

    Also if it names a head that cannot be, such as one of a negative layer.
    """
    for file in (file for part in makers if (file := _file(out, part)).is_file()):
        try:
            with displayed([file]):
                shape_of([Record.load(file).parts])
        except RecordError as error:
            raise RecordError(f"{error} Delete {file} to run that part again.") from error


def is_unfinished(record: Record) -> bool:
    """Whether other processes work on the rest of a trade-off."""
    return isinstance(record.parts, Tradeoff) and record.parts.unfinished > 0
