"""DIR/unfinished: pieces of a command that was interrupted, with a note of its name. The same command resumes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headcount import file_list, journal, processes
from headcount.errors import FolderError, RecordError

if TYPE_CHECKING:
    from headcount.record import Record

NAME, _NOTE = "unfinished", "study.json"
# Commands that resume, and the settings files of their work: that of earlier versions has no note.
_SETTINGS = {
    "ablate": ("first/*-of-*/work.json", "choice/*-of-*/work.json", "second/*-of-*/work.json"),
    "agreement": ("*/*-of-*/work.json",),
    "curves": ("*/*-of-*/work.json",),
    "score": ("*-of-*/work.json",),
    "specialisation": ("*/subject.json",),
    "tradeoff": ("work.json",),
}

_PARTS = {  # files or folders with the names of the parts that are left out of a command by other options
    "ablate": ("*/",),
    "agreement": ("*/", "finished/*/*.safetensors"),
    "specialisation": ("*/",),
    "tradeoff": ("arms/*",),
}


def check_unfinished(folder: Path, study: str) -> None:
    """Raise if a folder has the work of another command, or files that are not of unfinished work."""
    if all(map(journal.is_being_written, _work(folder))):  # such as the note, by another process of this command
        return
    owner = _owner(folder)
    if owner is None:
        raise FolderError(
            f"{folder} has files that headcount did not write, in the place of unfinished work; move them, or give "
            "another folder."
        )
    if owner != study:
        raise FolderError(
            f"{folder} is unfinished work of {owner!r:.40}, not of {study!r}. Run that command again to finish it, or "
            "give another folder."
        )


@contextmanager
def noted(folder: Path, study: str) -> Iterator[None]:
    """Note whose work a folder has, if the command resumes. Without any work, no folder stays."""
    if study not in _SETTINGS:
        yield
        return
    with file_list.listing(folder):
        if not processes.is_main():
            yield
            return
        journal.write_json(folder / _NOTE, {"study": study})
        try:
            yield
        finally:
            if not _has_work(folder):
                journal.remove_listed(folder)


def remove_unfinished(folder: Path, record: Record) -> None:
    """Remove the work of a command after its result was saved.

    It stays if it has parts that the result does not: of the same command with other options, which can resume.
    """
    if record.study not in _SETTINGS or not _begun_parts(folder, record.study) <= _finished_parts(record):
        return
    journal.remove_listed(folder)


def _begun_parts(folder: Path, study: str) -> set[str]:
    """Names of the parts that a folder of unfinished work has: points, scores, models or data sets."""
    paths = (path for pattern in _PARTS.get(study, ()) for path in folder.glob(pattern))
    names = {path.name for path in paths if path.is_file() or _has_work(path)}
    return {name.removesuffix(".json").removesuffix(".claim").removesuffix(".safetensors") for name in names}


def _finished_parts(record: Record) -> set[str]:
    """Names of the parts that a result was made from."""
    parts, arguments = record.parts, record.signature.arguments
    if record.study == "ablate":
        return {name for name, used in (("first", True), ("second", parts.other)) if used and not arguments["early"]}
    if record.study == "agreement":
        return {"finished", *parts.by_method, *parts.refused}
    if record.study == "specialisation":
        return set(map(str, range(len(parts.models))))
    if record.study == "tradeoff":
        from headcount.studies.point import point_names

        return point_names(parts.points, arguments["seeds"])
    return set()


def _has_work(folder: Path) -> bool:
    return bool(_work(folder))


def _work(folder: Path) -> list[Path]:
    """Files of a folder besides the note and the list. Finished pieces leave empty folders."""
    return [
        path for path in folder.rglob("*") if path.is_file() and path not in (folder / _NOTE, folder / file_list.NAME)
    ]


def _owner(folder: Path) -> str | None:
    """The command that work belongs to; None if it is not known."""
    if not (folder / _NOTE).is_file():
        studies = (study for study, files in _SETTINGS.items() if any(any(folder.glob(file)) for file in files))
        return next(studies, None)
    try:
        note = journal.read_json(folder / _NOTE)
    except RecordError:
        return None
    study = note.get("study") if isinstance(note, dict) else None
    return study if isinstance(study, str) else None
