"""The page on records is what the dataclasses say, and a key means one thing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

import pytest

from headcount.record.codec import field_types
from headcount.record.record import results
from headcount.record.schema import _classes, page
from headcount.report.figure import figures
from headcount.report.joined import STUDY
from headcount.report.section import ordered

PAGE = Path(__file__).parents[2] / "docs" / "records.md"
RESULTS = dict(results.items())


def test_the_page_is_written_from_the_classes() -> None:
    """Write it with: python -m headcount.record.schema > docs/records.md"""
    assert PAGE.read_text(encoding="utf-8") == page()


def every_class() -> set[Any]:
    found, waiting = set(), list(RESULTS.values())
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.add(kind)
            waiting += [inner for hint in field_types(kind)[0].values() for inner in _classes(hint)]
    return found


@pytest.mark.parametrize("key", ["heads", "removed", "num_heads", "removed_heads", "kept_by_kind"])
def test_a_key_has_one_type_everywhere(key: str) -> None:
    assert len({str(field_types(kind)[0][key]) for kind in every_class() if key in field_types(kind)[0]}) == 1


def has(kind: Any, name: str) -> bool:
    """Whether a result has a part; a.b is part b of part a."""
    key, _, inner = name.partition(".")
    hint = field_types(kind)[0].get(key)
    if hint is None:
        return hasattr(kind, key)
    classes = list(_classes(hint))
    return not inner or get_origin(hint) is Mapping or has(classes[0], inner)


def test_sections_and_figures_name_parts_that_exist() -> None:
    for name, section in ordered():
        for study in section.studies:
            assert all(has(RESULTS[study], part) for part in section.parts if study != STUDY), name
    for name, figure in figures.items():
        fitting = [kind for kind in RESULTS.values() if all(has(kind, part) for part in figure.parts)]
        assert fitting, name
