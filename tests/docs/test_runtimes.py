"""The table of families and runtimes in the how-to says what the runtimes say of such models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deployed
import headcount as hc
from headcount.exports.export import RUNTIMES

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
ALIKE = "if all layers are alike"


def table() -> dict[str, dict[str, str]]:
    """Family -> runtime -> cell."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    start = next(index for index, row in enumerate(rows) if row[0] == "family")
    return {row[0]: dict(zip(rows[start][1:], row[1:], strict=True)) for row in rows[start + 2 :]}


def takes(runtime: str, model: Any) -> bool:
    return RUNTIMES[runtime].obstacle(model) is None


def test_the_table_has_every_family_and_runtime() -> None:
    assert set(table()) == set(deployed.FAMILIES)
    assert all(set(cells) == set(RUNTIMES) for cells in table().values())


@pytest.mark.parametrize("family", deployed.FAMILIES)
def test_a_cell_says_what_the_runtime_says(family: str) -> None:
    for architecture in deployed.FAMILIES[family]:
        uneven = deployed.pruned(architecture) if architecture in deployed.UNEVEN else deployed.build(architecture)
        for runtime, cell in table()[family].items():
            assert takes(runtime, uneven) == cell.startswith("yes"), (architecture, runtime)
            if cell == ALIKE:
                model = deployed.build(architecture)
                even = hc.remove(model, hc.locate(model).mask(off=["decoder.*.0", "decoder.*.1"]), verify=False)
                assert takes(runtime, even)
            else:
                assert cell == "-" or cell.startswith("yes")
            assert ("with cache" in cell) == (runtime in ("onnx", "openvino") and uneven.can_generate() and cell != "-")
