"""Terms that the page explains, and the glossary that is written from them."""

from __future__ import annotations

from pathlib import Path

from headcount.report.terms import TERMS, glossary_table

GLOSSARY = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_the_glossary_has_the_terms_of_the_page() -> None:
    """Run `python -m headcount.report.terms` and put its table into docs/glossary.md."""
    assert glossary_table() in GLOSSARY.read_text(encoding="utf-8")


def test_a_form_belongs_to_one_term_and_every_text_is_a_sentence() -> None:
    forms = [form.lower() for term in TERMS for form in (term.name, *term.forms)]
    assert len(forms) == len(set(forms))
    assert [term.name for term in TERMS if not term.text.endswith(".") or "|" in term.text] == []
