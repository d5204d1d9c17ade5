"""Notebooks run as Jupyter runs them, without Jupyter: `python tests/notebooks.py FILE` writes their outputs anew."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


@dataclass(frozen=True)
class Shown:
    """What a cell printed, and the value of its last line."""

    printed: str
    value: Any

    def outputs(self, count: int) -> list[dict[str, Any]]:
        outputs: list[dict[str, Any]] = []
        if self.printed:
            outputs.append({"output_type": "stream", "name": "stdout", "text": self.printed.splitlines(keepends=True)})
        if self.value is not None:
            data = {"text/plain": repr(self.value).splitlines(keepends=True)}
            if hasattr(self.value, "_repr_html_"):
                data["text/html"] = self.value._repr_html_().splitlines(keepends=True)
            outputs.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
        return outputs


def cells(notebook: Path, kind: str) -> list[str]:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == kind]


def run(notebook: Path, space: dict[str, Any]) -> Iterator[Shown]:
    """Run the code cells in order; `space` holds the variables afterwards."""
    space["__name__"] = "__main__"
    for code in cells(notebook, "code"):
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, notebook.name, "exec"), space)
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), space) if last else None
        yield Shown(printed.getvalue(), value)


def write_outputs(notebook: Path) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for count, (cell, shown) in enumerate(zip(code, run(notebook, {}), strict=True), 1):
        cell |= {"execution_count": count, "outputs": shown.outputs(count)}
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_outputs(Path(name))
