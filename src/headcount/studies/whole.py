"""Whole studies: every experiment of a paper on one model, part by part, in one combined record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from headcount.checkpoints.loading import Loading
from headcount.claims.pool import LEDGER, ledger_of
from headcount.errors import UnknownName
from headcount.progress import Progress, silent
from headcount.record import Record
from headcount.record.results.combined import Combined
from headcount.studies.parts import PARTS
from headcount.studies.parts_folder import run_parts, save_part
from headcount.studies.study_settings import StudySettings
from headcount.studies.subject import StudySubject

PAPERS: dict[str, tuple[str, ...]] = {
    "voita2019": ("relevance", "roles", "attention", "examples", "tradeoff", "all-kinds"),
    "michel2019": ("gradient", "ablation", "replacement", "curves", "dynamics", "speed"),
}
_LONGEST = ("tradeoff", "all-kinds")  # run last
PAPERS["all"] = (*(part for parts in PAPERS.values() for part in parts if part not in _LONGEST), *_LONGEST)


def whole_study(
    name: str,
    settings: StudySettings,
    out: Path,
    *,
    loading: Loading | None = None,
    parts: Sequence[str] | None = None,
    progress: Progress = silent,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Run the parts of a study in order and save each. refresh is called with the record after each part.

    parts: those to run, by default all. The record also has the others that an earlier run in this folder finished.

    A part that is not possible with this model or data is skipped, with the reason in the record. The last part is the
    ledger of the papers' claims, decided on the other parts.
    """
    part_names = _wanted(name, parts)
    subject = StudySubject(settings, loading or Loading(), out / "unfinished", progress)

    def complete(record: Record[Combined]) -> Record[Combined]:
        record = with_ledger(_completed_roles(record, out))
        save_part(record.parts.records[LEDGER], out, LEDGER)
        return record

    makers = {part: PARTS[part] for part in PAPERS[name]}
    record = run_parts(name, subject, makers, out, wanted=part_names, refresh=refresh, complete=complete)
    refresh(record)
    return record


def _completed_roles(record: Record[Combined], out: Path) -> Record[Combined]:
    """The record with relevance in its roles, also if that was measured later (`--parts`)."""
    from headcount.studies.roles import with_relevance

    records = dict(record.parts.records)
    if "roles" not in records or "relevance" not in records or records["roles"].parts.relevance is not None:
        return record
    records["roles"] = with_relevance(records["roles"], records["relevance"])
    save_part(records["roles"], out, "roles")
    return replace(record, parts=replace(record.parts, records=records))


def with_ledger(record: Record[Combined]) -> Record[Combined]:
    """The record of a whole study with the claims of its papers, decided on its parts."""
    records = {**record.parts.records, LEDGER: ledger_of([record])}
    return replace(record, parts=replace(record.parts, records=records))


def _wanted(name: str, parts: Sequence[str] | None) -> Sequence[str]:
    if name not in PAPERS:
        raise UnknownName("study", name, PAPERS)
    for part in parts or ():
        if part not in PAPERS[name]:
            raise UnknownName(f"part of {name}", part, PAPERS[name])
    return parts or PAPERS[name]
