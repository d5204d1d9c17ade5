"""Every table and figure of both papers: where the report shows it, or why it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headcount.record import Record
from headcount.report.exhibits import Exhibit, exhibits
from headcount.report.figure import Figure
from headcount.report.section import Section, figures_for, labelled_for
from headcount.report.subject import Subject

_TABLES = {("michel2019", "Tables 2 and 3"): "alone", ("voita2019", "Table 2"): "all-kinds"}  # tables have no figure
# These compare models: of target languages and domains.
_SEVERAL = {("voita2019", "Figure 2"), ("voita2019", "Figure 4")}
SPELLED = {"voita2019": "Voita et al. 2019", "michel2019": "Michel et al. 2019"}
_COMMAND = "headcount study {} MODEL --data DATA --parts {}"
# Parts of a whole study, and what the study of their records is called.
_STUDIES = {
    "roles": "roles", "attention": "attention", "tradeoff": "tradeoff", "all-kinds": "tradeoff", "ablation": "ablate",
    "curves": "curves", "speed": "bench", "dynamics": "dynamics",
}  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """One exhibit: the section that shows it, or the reason why none does."""

    exhibit: Exhibit
    section: str | None
    reason: str


def shown(found: Sequence[Subject], every: Sequence[tuple[str, Section]], known: Mapping[str, Figure]) -> list[Shown]:
    """every: sections by name; known: figures by name."""
    places = _places(found, every, known)
    lines = []
    for exhibit in exhibits():
        key = (exhibit.paper, exhibit.name)
        place = places.get(exhibit.figure or f"table {_TABLES[key]}")
        reason = _reason(exhibit, found, dict(every), known)
        if place and key in _SEVERAL and len(found) < 2:
            place, reason = None, "needs records of two models or more"
        lines.append(Shown(exhibit, place, "" if place else reason))
    return lines


def _places(
    found: Sequence[Subject], every: Sequence[tuple[str, Section]], known: Mapping[str, Figure]
) -> dict[str, str]:
    """Figures, and tables of sections, by the first section that shows them."""
    all_sections = [section for _, section in every]
    places: dict[str, str] = {}
    for name, section in every:
        records = [record for _, record in labelled_for(section, found)]
        if records:
            places.setdefault(f"table {name}", name)
            for figure in figures_for(section, records, all_sections, known):
                places.setdefault(figure, name)
    for record in (record for subject in found for record in subject.records):
        if not any(section.fits(record) for section in all_sections):
            for figure, member in known.items():
                if member.fits(record):
                    places.setdefault(figure, "other")
    return places


def _reason(
    exhibit: Exhibit, found: Sequence[Subject], every: Mapping[str, Section], known: Mapping[str, Figure]
) -> str:
    """Why there is no such table or figure: what the study said, what its record lacks, or the command for it."""
    for subject in found:
        if exhibit.part in subject.missing:
            return subject.missing[exhibit.part]
    said = [_lacks(record, exhibit, every, known) for subject in found for record in subject.of(_STUDIES[exhibit.part])]
    return said[-1] if said else f"not measured; {_COMMAND.format(exhibit.paper, exhibit.part)}"


def _lacks(record: Record, exhibit: Exhibit, every: Mapping[str, Section], known: Mapping[str, Figure]) -> str:
    if exhibit.figure is None:
        return every[_TABLES[exhibit.paper, exhibit.name]].without
    homes = [section.without for section in every.values() if exhibit.figure in section.figures]
    return known[exhibit.figure].lacks(record) or "".join(homes) or f"the {record.study} record does not have it"
