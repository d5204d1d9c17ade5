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
# Parts of a whole study -> study of their records.
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


def shown(
    all_subjects: Sequence[Subject], sections: Sequence[tuple[str, Section]], drawable: Mapping[str, Figure]
) -> list[Shown]:
    places = _places(all_subjects, sections, drawable)
    lines = []
    for exhibit in exhibits():
        key = (exhibit.paper, exhibit.name)
        anchor = places.get(exhibit.figure or f"table {_TABLES[key]}")
        reason = _reason(exhibit, all_subjects, dict(sections), drawable)
        if anchor and key in _SEVERAL and len(all_subjects) < 2:
            anchor, reason = None, "needs records of two models or more"
        lines.append(Shown(exhibit, anchor, "" if anchor else reason))
    return lines


def _places(
    all_subjects: Sequence[Subject], sections: Sequence[tuple[str, Section]], drawable: Mapping[str, Figure]
) -> dict[str, str]:
    """Figures, and tables of sections, by the first section that shows them."""
    all_sections = [section for _, section in sections]
    places: dict[str, str] = {}
    for name, section in sections:
        records = [record for _, record in labelled_for(section, all_subjects)]
        if records:
            places.setdefault(f"table {name}", name)
            for figure in figures_for(section, records, all_sections, drawable):
                places.setdefault(figure, name)
    for record in (record for subject in all_subjects for record in subject.records):
        if not any(section.fits(record) for section in all_sections):
            for figure, member in drawable.items():
                if member.fits(record):
                    places.setdefault(figure, "other")
    return places


def _reason(
    exhibit: Exhibit, all_subjects: Sequence[Subject], sections: Mapping[str, Section], drawable: Mapping[str, Figure]
) -> str:
    """The reason why a table or figure is missing: from the study or its record, or the command for it."""
    for subject in all_subjects:
        if exhibit.part in subject.missing:
            return subject.missing[exhibit.part]
    reasons = [
        _lacks(record, exhibit, sections, drawable)
        for subject in all_subjects
        for record in subject.of(_STUDIES[exhibit.part])
    ]
    return reasons[-1] if reasons else f"not measured; {_COMMAND.format(exhibit.paper, exhibit.part)}"


def _lacks(record: Record, exhibit: Exhibit, sections: Mapping[str, Section], drawable: Mapping[str, Figure]) -> str:
    if exhibit.figure is None:
        return sections[_TABLES[exhibit.paper, exhibit.name]].without
    homes = [section.without for section in sections.values() if exhibit.figure in section.figures]
    return drawable[exhibit.figure].lacks(record) or "".join(homes) or f"not in the {record.study} record"
