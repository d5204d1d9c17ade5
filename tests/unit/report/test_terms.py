"""Terms that the report explains."""

from __future__ import annotations

from headcount.report.terms import TERMS


def test_a_form_belongs_to_one_term_and_every_text_is_a_sentence() -> None:
    forms = [form.lower() for term in TERMS for form in (term.name, *term.forms)]
    assert len(forms) == len(set(forms))
    assert [term.name for term in TERMS if not term.text.endswith(".") or "|" in term.text] == []
