"""The notebook for teachers runs from top to bottom, and shows what its text says."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "quickstart.ipynb"


def cells(kind: str) -> list[str]:
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == kind]


def shown(code: str, space: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does: all of it, and the value of its last line if that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "quickstart.ipynb", "exec"), space)
    return eval(compile(ast.Expression(last.value), "quickstart.ipynb", "eval"), space) if last else None


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is there after the last cell, and under `shown` what each cell showed."""
    import os

    space: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("notebook"))
    try:
        space["shown"] = [shown(code, space) for code in cells("code")]
    finally:
        os.chdir(before)
    return space


def test_it_is_small_and_explains_more_than_it_computes() -> None:
    assert NOTEBOOK.stat().st_size < 100_000
    assert len(cells("markdown")) >= len(cells("code")) - 1
