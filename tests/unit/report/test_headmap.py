"""Maps of heads can be read at any width: every number at the stated precision, nothing cut."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from headcount.report.canvas import head_map
from headcount.report.headmap import HeadMap
from screens import WIDTHS, screen

HEADS = (12, 16, 32)


def values(heads: int, largest: float = 3.0) -> dict[str, float]:
    random = np.random.default_rng(heads)
    found = {
        f"{kind}.{layer}.{head}": random.normal()
        for kind in ("encoder", "cross")
        for layer in (0, 11)
        for head in range(heads)
    }
    scale = largest / max(map(abs, found.values()))
    return {name: float(scale * value) for name, value in found.items()}


def read(text: str) -> dict[str, str]:
    """Head -> cell, from all blocks of a map."""
    cells: dict[str, str] = {}
    columns: list[str] = []
    for line in text.splitlines():
        first, *others = line.split()[:1] + line.split()[1:]
        if first == "site":
            columns = others
        elif re.fullmatch(r"\w+\.\d+", first):
            assert len(others) == len(columns), line
            cells |= {f"{first}.{column}": cell for column, cell in zip(columns, others, strict=True)}
    return cells


def text_of(shown: HeadMap, width: int) -> str:
    text = screen(shown, width)
    return "\n".join(line for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("largest", [0.004, 0.6, 3.0, 4567.0])
@pytest.mark.parametrize("signed", [True, False])
def test_every_number_can_be_read(width: int, heads: int, largest: float, signed: bool) -> None:
    numbers = values(heads, largest) if signed else {name: abs(value) for name, value in values(heads, largest).items()}
    starred = [name for name, value in numbers.items() if abs(value) > 0.7 * largest] if signed else None
    text = text_of(HeadMap(numbers, signed=signed, starred=starred), width)
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= width
    cells = read(text)
    assert set(cells) == set(numbers)
    legend = re.search(r"multiples of ([\d.e+-]+), rounded", " ".join(text.split()))
    for name, cell in cells.items():
        shown = cell.rstrip("*")
        assert cell.endswith("*") == (starred is not None and name in starred)
        assert shown[0] in "+-" or not signed
        assert not legend or len(shown.lstrip("+-")) == 1
        unit = float(legend[1]) if legend else 1.0
        precision = unit if legend else 10.0 ** -len(shown.partition(".")[2])
        assert abs(float(shown) * unit - numbers[name]) <= 0.51 * precision + 0.005 * abs(numbers[name]) * bool(legend)
    assert largest != 3.0 or legend or precision == 0.01


def test_what_fits_has_all_its_digits() -> None:
    """The map of a 12-layer encoder of 12 heads at 80 columns, in two blocks."""
    text = text_of(HeadMap(values(12), signed=True, starred=[]), 80)
    assert "digits" not in text
    assert text.count("site") == 2
    assert text_of(HeadMap(values(12), signed=True, starred=[]), 120).count("site") == 1


def test_layers_that_lost_heads_have_gaps() -> None:
    text = screen(HeadMap({"encoder.0.0": 1.0, "encoder.0.2": 2.0, "encoder.1.1": 3.0}), 80)
    first, second = text.splitlines()[1:3]
    assert first.split() == ["encoder.0", "1.00", "2.00"]
    assert second.index("3.00") > first.index("1.00")
    assert second.index("3.00") < first.index("2.00")


def test_nothing_changes_without_any_head() -> None:
    assert "+0.00" in screen(HeadMap({"encoder.0.0": 0.0}, signed=True, starred=[]), 40)


def test_a_number_that_no_model_has_takes_no_time() -> None:
    """A record can be edited: columns are for the heads it names, not for all numbers up to the largest."""
    numbers = {"decoder.0.0": 0.25, "decoder.999999999.999999999": 0.5}
    text = text_of(HeadMap(numbers), 80)
    assert "999999999" in text
    assert "0.25" in text
    axes = Figure().subplots()
    head_map(axes, numbers, texts={"decoder.999999999.999999999": "x"})
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "999999999"]
