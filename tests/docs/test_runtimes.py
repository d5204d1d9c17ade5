"""The table of families and runtimes in the how-to says what the runtimes say of such models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deployed
import headcount as hc
from headcount.exports.export import RUNTIMES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "deploy.md"
TITLES = {
    "llama.cpp": "gguf",
    "vLLM": "vllm",
    "ONNX Runtime": "onnx",
    "OpenVINO": "openvino",
    "CTranslate2": "ctranslate2",
}
ALIKE = "if all layers are alike"


def table(page: Path = PAGE) -> dict[str, dict[str, str]]:
    """Family -> runtime -> cell."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    start = next(index for index, row in enumerate(rows) if row[0] == "family")
    return {row[0]: dict(zip(rows[start][1:], row[1:], strict=True)) for row in rows_below(rows, start)}


def rows_below(rows: list[list[str]], start: int) -> list[list[str]]:
    """The rows of the table that starts here: further tables of the page have other numbers of columns."""
    below = rows[start + 2 :]
    return below[: next((index for index, row in enumerate(below) if len(row) != len(rows[start])), len(below))]


def takes(runtime: str, model: Any) -> bool:
    return RUNTIMES[runtime].obstacle(model) is None


def test_the_table_has_every_family_and_runtime() -> None:
    assert set(table()) == set(deployed.FAMILIES)
    assert all(set(cells) == set(RUNTIMES) for cells in table().values())


def test_the_readme_says_the_same() -> None:
    page = table()
    for family, cells in table(ROOT / "README.md").items():
        for titles, cell in cells.items():
            for title in titles.split(", "):
                if (family, title) == ("Qwen3", "llama.cpp"):
                    assert cell == "with tied embeddings, or all layers alike"
                    assert page["Qwen3, tied embeddings"]["gguf"] == "yes"
                    assert page["Qwen3"]["gguf"] == ALIKE
                    continue
                there = page[family][TITLES[title]]
                assert cell.partition(",")[0] == there.partition(",")[0], (family, title)
                assert ("with cache" in cell) == ("with cache" in there), (family, title)


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
