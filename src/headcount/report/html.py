"""The page: one self-contained HTML file made from records. Its template, styles and scripts are in page/."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import quote

from headcount.record import Record
from headcount.record.codec import encode
from headcount.report.figure import OUT_OF_SHAPE, Figure, draw, figures, named
from headcount.report.headline import headline
from headcount.report.measured import measured_lines
from headcount.report.overview import Tile, overview
from headcount.report.palette import INK, STYLE
from headcount.report.papers import SPELLED, Shown, shown
from headcount.report.payload import payload
from headcount.report.policy import policy
from headcount.report.section import Labelled, Section, all_tables, answers, figures_for, labelled_for, ordered
from headcount.report.subject import Subject, subjects
from headcount.report.table import Column, Table
from headcount.report.terms import TERMS

SCRIPTS = (
    "colour.js", "drawing.js", "downloads.js", "terms.js", "tables.js", "map.js", "links.js", "attention.js",
    "card.js", "charts.js", "slider.js", "compare.js", "page.js",
)  # fmt: skip  # in the order in which they need each other
_FIRST = ("ledger",)  # sections right after the map
_SUMMARISED = 3  # models on the first screen
_CROWDED = 600  # heads from which on a static map is unreadable; the interactive one is above


def page(records: Sequence[Record], *, title: str | None = None) -> str:
    """The whole page as text."""
    all_subjects = subjects(records)
    folder = files("headcount.report").joinpath("page")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    scripts = "\n".join(read(name) for name in SCRIPTS)
    style, script = read("page.css"), f'"use strict";\n(() => {{\n{scripts}\n}})();'  # with local names
    data = payload(all_subjects)
    heading = title or f"The heads of {' and '.join(subject.label for subject in all_subjects)}"
    sections, all_figures = ordered(), dict(figures.items())
    drawable = all_figures
    present = [(name, section, labelled_for(section, all_subjects)) for name, section in sections]
    filled = [(name, section, labelled) for name, section, labelled in present if labelled]
    if max((len(subject["heads"]) for subject in data["subjects"]), default=0) > _CROWDED:
        drawable = {name: figure for name, figure in drawable.items() if not name.endswith("-map")}
    stills = {
        name: _stills(name, section, labelled, [other for _, other in sections], drawable)
        for name, section, labelled in filled
    }
    heads = set(data["subjects"][0]["heads"]) if len(all_subjects) == 1 else set()
    answers = {name: _answers(section, labelled, len(all_subjects)) for name, section, labelled in filled}
    written = {
        name: _section(name, section, labelled, answers[name], stills[name], heads)
        for name, section, labelled in filled
    }
    slots = {
        "title": escape(heading),
        "overview": _overview(all_subjects, data),
        "joined": _joined(all_subjects),
        "policy": escape(policy([script, _chart_library()], [style]), quote=True),
        "style": style,
        "contents": "".join(f'<li><a href="#{name}">{escape(section.title)}</a></li>' for name, section, _ in filled),
        "short": "".join(_short(name, section, answers[name]) for name, section, _ in filled),
        "ledger": "".join(written.get(name, "") for name in _FIRST),
        "sections": "".join(text for name, text in written.items() if name not in _FIRST),
        "other": _other(all_subjects, [section for _, section in sections], drawable),
        "papers": _papers(shown(all_subjects, sections, all_figures)),
        "terms": _terms(),
        "missing": _missing([section for _, section, labelled in present if not labelled], all_subjects),
        "signatures": _signatures(all_subjects),
        "data": _inert(data),
        "charts": _packed_charts(),
        "script": script,
    }
    return Template(read("page.html")).substitute(slots)


def _overview(all_subjects: Sequence[Subject], data: dict[str, Any]) -> str:
    """The first screen: questions and answers about each model."""
    single = len(all_subjects) == 1
    text = ""
    for index, subject in enumerate(all_subjects[:_SUMMARISED]):
        heads = data["subjects"][index]["heads"]
        link = "" if index == 0 else f"@{quote(subject.label, safe='')}"
        tiles = "".join(_tile(tile, set(heads), link, "h2" if single else "h3") for tile in overview(subject, heads))
        text += ("" if single else f"<h2>{escape(subject.label)}</h2>") + f'<div class="tiles">{tiles}</div>'
    unsummarised = len(all_subjects) - _SUMMARISED
    return text + (
        f'<p class="note">{unsummarised} more below: choose one as Model of the map.</p>' if unsummarised > 0 else ""
    )


def _tile(tile: Tile, heads: set[str], link: str, heading: str) -> str:
    missing = f"Not measured yet. This command measures it: <code>{escape(tile.command)}</code>"
    answer = f"<p>{_linked(tile.answer, heads, link)}</p>" if tile.answer else f'<p class="note">{missing}</p>'
    return f'<div class="tile"><{heading}>{escape(tile.question)}</{heading}>{answer}</div>'


def _linked(text: str, heads: set[str], link: str = "") -> str:
    """Text with names of heads linked to their cards."""

    def anchor(name: re.Match[str]) -> str:
        return f'<a href="#{name[0]}{link}">{name[0]}</a>' if name[0] in heads else name[0]

    return re.sub(r"[A-Za-z][\w-]*\.\d+\.\d+", anchor, escape(text))


def _terms() -> str:
    """Terms with their explanations; forms: spellings that the page explains."""
    lines = ""
    for number, term in enumerate(TERMS):
        forms = "|".join((term.name, *term.forms))
        lines += f'<dt data-forms="{escape(forms)}">{escape(term.name)}</dt>'
        lines += f'<dd id="term-{number}">{escape(term.text)}</dd>'
    return f"<dl>{lines}</dl>"


def _joined(all_subjects: Sequence[Subject]) -> str:
    """The headline of each model."""
    lines = []
    for subject in all_subjects:
        with suppress(*OUT_OF_SHAPE):
            lines.append((subject.label, headline(subject.records)))
    sentences = [(f"{label}: " if len(all_subjects) > 1 else "") + line for label, line in lines if line]
    return "".join(f'<p class="answer">{escape(line)}</p>' for line in sentences)


def _short(name: str, section: Section, answers: Sequence[str]) -> str:
    text = " ".join(answers)
    return f'<li><a href="#{name}">{escape(section.question)}</a> {escape(text)}</li>'


def _answers(section: Section, labelled: Labelled, subjects: int) -> list[str]:
    try:
        return answers(section, labelled, subjects=subjects)
    except OUT_OF_SHAPE as error:  # a malformed record leaves the rest readable
        return [f"This cannot be answered from the record: {error!r}."]


def _tables(section: Section, labelled: Labelled) -> str:
    try:
        return "".join(map(_table, all_tables(section, labelled)))
    except OUT_OF_SHAPE as error:
        return f'<p class="note">The tables could not be made: {escape(repr(error))}.</p>'


def _section(
    name: str, section: Section, labelled: Labelled, answers: Sequence[str], stills: str, heads: set[str]
) -> str:
    paragraphs = "".join(f'<p class="answer">{_linked(text, heads)}</p>' for text in answers)
    measured = "".join(
        f'<p class="note{"" if held_out else " warning"}">{escape(line)}</p>'
        for line, held_out in measured_lines(labelled)
    )
    numbers = _tables(section, labelled)
    signed = "".join(f"<p><code>{escape(str(record.signature))}</code></p>" for _, record in labelled)
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><p class="topic">{escape(section.title)}</p>'
        f'<h2 id="{name}-title">{escape(section.question)}</h2>{paragraphs}{measured}'
        f"{stills}{numbers}"
        '<details class="how"><summary>How this was measured</summary>'
        f"<p>{escape(section.method)}</p>{signed}</details>"
        "</section>"
    )


def _stills(
    anchor: str, section: Section, labelled: Labelled, sections: Sequence[Section], drawable: Mapping[str, Figure]
) -> str:
    records = [record for _, record in labelled]
    by_figure = figures_for(section, records, sections, drawable)
    drawn = [_figure(anchor, name, drawable[name], figure_records) for name, figure_records in by_figure.items()]
    return f'<div class="stills">{"".join(drawn)}</div>' if drawn else ""


def _figure(anchor: str, name: str, figure: Figure, records: Sequence[Record]) -> str:
    """anchor: section of the page; a figure may be in several."""
    try:
        picture, caption = _drawn(anchor, name, tuple(json.dumps(record.to_plain()) for record in records))
    except OUT_OF_SHAPE as error:
        return f'<p class="note">{escape(figure.title)} could not be drawn: {escape(repr(error))}.</p>'
    return (
        f'<figure class="still" data-name="{name}" role="group" aria-label="{escape(figure.title)}">'
        f'<div class="scroll" tabindex="0" role="img" aria-label="{escape(caption)}">{picture}</div>'
        f'<figcaption><span>{escape(caption)} <span class="source">{escape(figure.shows)}.</span></span>'
        f'<span class="tools" data-tools></span></figcaption></figure>'
    )


@lru_cache(maxsize=64)  # a page that is written again after each part draws each figure once
def _drawn(anchor: str, name: str, records: tuple[str, ...]) -> tuple[str, str]:
    """The picture as SVG in the colour of the text, with ids that are unique on the page, and its caption."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    drawing = draw(name, [Record.from_plain(json.loads(record)) for record in records])
    text = io.StringIO()
    drawing.canvas.dpi = 100  # of embedded images; finer ones cost time and bytes
    for patch in (drawing.canvas.patch, *(axes.patch for axes in drawing.canvas.axes)):
        patch.set_alpha(0)
    with rc_context(STYLE):
        # savefig would draw everything twice, once to measure it
        FigureCanvasSVG(drawing.canvas).print_svg(text, metadata={"Date": None})
    svg = re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for mark in (r'\bid="', r'xlink:href="#', r'\bhref="#', r"url\(#"):
        svg = re.sub(f"({mark})(?!{anchor}-{name}-)", rf"\g<1>{anchor}-{name}-", svg)
    return _once(_without_styles(svg)).replace(INK, "currentColor"), drawing.caption


def _without_styles(svg: str) -> str:
    """Convert inline styles to attributes: the page's policy forbids inline styles."""
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = svg.replace("<svg ", '<svg stroke-linejoin="round" stroke-linecap="butt" ', 1)  # from the removed style
    return re.sub(
        r"<[a-z][^>]*>", lambda tag: re.sub(r'\sstyle="([^"]*)"', lambda style: _attributes(style[1]), tag[0]), svg
    )


def _attributes(style: str) -> str:
    pairs = (part.partition(":") for part in style.split(";") if ":" in part)
    properties = {name.strip(): value.strip() for name, _, value in pairs}
    return "".join(f' {name}="{value}"' for name, value in properties.items())


def _once(svg: str) -> str:
    """Without repeated ids: the same image twice has the same id twice."""
    seen_ids: set[str] = set()

    def first(match: re.Match[str]) -> str:
        fresh = match[1] not in seen_ids
        seen_ids.add(match[1])
        return match[0] if fresh else ""

    return re.sub(r' id="([^"]*)"', first, svg)


def _table(full_table: Table) -> str:
    table = full_table.shortened("the table of heads lists every head")
    numeric = [any(_is_number(row[index]) for row in table.rows) for index in range(len(table.columns))]
    shades = [' class="number"' if number else "" for number in numeric]
    head = "".join(
        f'<th scope="col"{shade}>{escape(column.name)}</th>'
        for column, shade in zip(table.columns, shades, strict=True)
    )
    body = "".join("<tr>" + "".join(map(_cell, table.columns, row, shades)) + "</tr>" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table"><div class="scroll" tabindex="0" role="group" aria-label="{escape(table.title)}">'
        f"<table data-sortable><caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{note}</div>"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _cell(column: Column, value: object, shade: str) -> str:
    exact = f' data-value="{json.dumps(value)}"' if _is_number(value) else ""
    return f"<td{exact}{shade}>{escape(column.text(value))}</td>"


def _other(all_subjects: Sequence[Subject], everyone: Sequence[Section], drawable: Mapping[str, Figure]) -> str:
    """Records that belong to no section: their figures and raw numbers."""
    sentences: list[str] = []
    for subject in all_subjects:
        for record in subject.records:
            if any(section.fits(record) for section in everyone):
                continue
            rows = [
                [name, value] for name, value in encode(record.parts).items() if isinstance(value, str | int | float)
            ]
            drawn = [
                _figure(f"other{len(sentences)}", name, figure, [record])
                for name, figure in drawable.items()
                if figure.fits(record)
            ]
            sentences.append(
                f"<h3>{escape(record.study)}, {escape(named(record))}</h3>"
                + f'<div class="stills">{"".join(drawn)}</div>'
                + (_table(Table("Numbers", [Column("part"), Column("value", 4)], rows)) if rows else "")
                + f"<p><code>{escape(str(record.signature))}</code></p>"
            )
    if not sentences:
        return ""
    top = '<p class="topic">Also recorded</p><h2>What else was measured?</h2>'
    return f'<section id="other">{top}{"".join(sentences)}</section>'


def _papers(lines: Sequence[Shown]) -> str:
    """Every table and figure of both papers, with a link to its place on the page."""
    body = ""
    for line in lines:
        title = escape(f"{SPELLED[line.exhibit.paper]}, {line.exhibit.name}")
        link = f'<a href="#{line.section}">here</a>' if line.section else escape(line.reason)
        body += f"<tr><td>{title}</td><td>{escape(line.exhibit.shows)}</td><td>{link}</td></tr>"
    available = sum(line.section is not None for line in lines)
    return (
        '<section id="papers"><p class="topic">The papers</p><h2>Which tables and figures of the papers are here?</h2>'
        f'<p class="answer">{available} of {len(lines)}.</p><details><summary>All of them</summary>'
        '<div class="table"><div class="scroll" tabindex="0" role="group" aria-label="Exhibits of the papers">'
        '<table data-sortable><thead><tr><th scope="col">in the paper</th><th scope="col">what it shows</th>'
        f'<th scope="col">where</th></tr></thead><tbody>{body}</tbody></table></div></div></details></section>'
    )


def _missing(absent: Sequence[Section], all_subjects: Sequence[Subject]) -> str:
    """Questions without records, with their commands; and missing parts of a study, with reasons."""
    reasons = [f"{subject.label}, {part}: {why}" for subject in all_subjects for part, why in subject.missing.items()]
    if not absent and not reasons:
        return ""
    why = "".join(f'<p class="note">{escape(reason)}</p>' for reason in reasons)
    lines = "".join(
        f"<tr><td>{escape(section.question)}</td><td><code>{escape(section.command)}</code></td></tr>"
        for section in absent
    )
    return (
        '<section id="missing"><p class="topic">Not in this report</p><h2>What was not measured?</h2>'
        "<p>These questions need records that were not given. Each command writes one; then "
        "<code>headcount report RECORD... --out report.html</code>.</p>"
        '<div class="table"><div class="scroll" tabindex="0" role="group" aria-label="Missing records"><table>'
        '<thead><tr><th scope="col">question</th><th scope="col">command</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div></div>{why}</section>"
    )


def _signatures(all_subjects: Sequence[Subject]) -> str:
    lines = []
    for subject in all_subjects:
        for record in subject.records:
            signature = record.signature
            versions = ", ".join(f"{name} {version}" for name, version in signature.versions.items())
            lines.append(
                f"<dt>{escape(record.study)}, {escape(subject.label)}</dt>"
                f"<dd><code>{escape(str(signature))}</code><br>{escape(signature.time)}; {escape(versions)}</dd>"
            )
    return f"<dl>{''.join(lines)}</dl>"


def _inert(data: object) -> str:
    """JSON that is safe inside a script element, whatever a token contains."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


@lru_cache(maxsize=1)
def _chart_library() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@lru_cache(maxsize=1)
def _packed_charts() -> str:
    """The compressed chart library, a third of its size; the browser unpacks it after the page is shown."""
    return base64.b64encode(gzip.compress(_chart_library().encode(), 6, mtime=0)).decode()
