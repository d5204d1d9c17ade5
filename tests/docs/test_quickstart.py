"""The notebook for teachers runs from top to bottom, and shows what its text says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from notebooks import FOLDER, cells, run

NOTEBOOK = FOLDER / "quickstart.ipynb"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is there after the last cell, and under `shown` what each cell showed."""
    import os

    space: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("notebook"))
    try:
        space["shown"] = [shown.value for shown in run(NOTEBOOK, space)]
    finally:
        os.chdir(before)
    return space


def test_it_is_small_and_explains_more_than_it_computes() -> None:
    assert NOTEBOOK.stat().st_size < 100_000
    assert len(cells(NOTEBOOK, "markdown")) >= len(cells(NOTEBOOK, "code")) - 1


def test_every_cell_runs_and_what_it_shows_is_readable(space: dict[str, Any]) -> None:
    shown = [value for value in space["shown"] if value is not None and not isinstance(value, str)]
    assert len(shown) >= 7
    assert all("<table" in value._repr_html_() and len(repr(value)) < 1000 for value in shown)


def test_the_text_is_true_of_what_it_shows(space: dict[str, Any]) -> None:
    """The job needs the second layer; its heads look one place to the left; the choice of four beats chance."""
    hc, model, task, sites = (space[name] for name in ("hc", "model", "task", "sites"))
    whole = task.quality(model).value
    losses = []
    for layer in (0, 1):
        with hc.masked(model, sites.mask(off=[f"encoder.{layer}.*"])):
            losses.append(task.quality(model).value - whole)
    assert losses[1] > 20 * abs(losses[0])
    held = space["roles"].held()
    for head in sites[1].head_names():
        assert [(one.role, one.label) for one in held[head]][:1] == [("positional", "-1")]
        assert space["roles"].confidence[head].value > 0.8
        assert space["ablation"].corrected[head] < 0.01
    assert {str(head) for head in space["mask"].kept} == {f"encoder.1.{index}" for index in range(4)}
    cut, chance = (task.quality(hc.remove(model, space[name])).value for name in ("mask", "chance"))
    assert cut - whole < 0.1 * (chance - whole)
    layers = [space["gradient"].layer("encoder", layer).mean() for layer in (0, 1)]
    assert layers[0] < 0.3 * layers[1]
    assert hc.locate(space["small"]).heads == space["mask"].kept


def test_the_outputs_in_the_file_are_those_of_its_cells() -> None:
    """A cell changed without being run again would show what it no longer computes."""
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    counts = [cell["execution_count"] for cell in found if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    shown = "".join(
        "".join(text)
        for cell in found
        for output in cell.get("outputs", ())
        for text in (output.get("text", ()), *output.get("data", {}).values())
    )
    assert "positional -1" in shown
    assert "Traceback" not in shown
    assert "/tmp" not in shown
