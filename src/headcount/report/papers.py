"""Every table and figure of both papers: where the report shows it, or why it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headcount.report.exhibits import Exhibit, exhibits
from headcount.report.figure import Figure
from headcount.report.section import Section, labelled_for
from headcount.report.subject import Subject

_TABLES = {("michel2019", "Tables 2 and 3"): "alone", ("voita2019", "Table 2"): "tradeoff"}  # tables have no figure
# These compare models: of target languages and domains.
_SEVERAL = {("voita2019", "Figure 2"), ("voita2019", "Figure 4")}
SPELLED = {"voita2019": "Voita et al. 2019", "michel2019": "Michel et al. 2019"}


@dataclass(frozen=True)
class Shown:
    """One exhibit: the section that shows it, or the reason why none does."""

    exhibit: Exhibit
    section: str | None
    reason: str


def shown(found: Sequence[Subject], every: Sequence[tuple[str, Section]], known: Mapping[str, Figure]) -> list[Shown]:
    """every: sections by name; known: figures by name."""
    records = [record for subject in found for record in subject.records]
    reasons = {part: reason for subject in found for part, reason in subject.missing.items()}
    filled = {name for name, section in every if labelled_for(section, found)}
    lines = []
    for exhibit in exhibits():
        place = _TABLES.get((exhibit.paper, exhibit.name))
        if exhibit.figure is not None:
            drawn = exhibit.figure in known and any(known[exhibit.figure].fits(record) for record in records)
            place = _place(exhibit.figure, every, filled) if drawn else None
        reason = reasons.get(exhibit.part, "not measured")
        if place and (exhibit.paper, exhibit.name) in _SEVERAL and len(found) < 2:
            place, reason = None, "needs records of two models or more"
        stands = place in filled or place == "other"
        lines.append(Shown(exhibit, place if stands else None, reason))
    return lines


def _place(figure: str, every: Sequence[tuple[str, Section]], filled: set[str]) -> str | None:
    own = [name for name, section in every if figure in section.figures and name in filled]
    return own[0] if own else "other"
