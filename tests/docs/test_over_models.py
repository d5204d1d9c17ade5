"""The tool that takes means over models, against a mean and a t-interval taken by hand."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

SCRIPT = Path(__file__).parents[2] / "docs" / "results" / "over_models.py"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Callable[[str], list[str]]:
    for model, (first, second) in enumerate([(1.0, 4.0), (2.0, 5.0), (6.0, 8.0)]):
        parts = {"costs": {"a": [{"value": first}], "b": [{"value": second}]}}
        (tmp_path / f"{model}.json").write_text(json.dumps({"parts": parts}))

    def printed(expression: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["over_models.py", expression, *map(str, sorted(tmp_path.glob("*.json")))])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return printed


def test_means_and_t_intervals_of_ratios(lines: Callable[[str], list[str]]) -> None:
    (line,) = lines("costs.a.*.value / costs.b.*.value")
    ratios = np.array([1 / 4, 2 / 5, 6 / 8])
    low, high = stats.t.interval(0.95, 2, ratios.mean(), stats.sem(ratios))
    assert f"{ratios.mean():.3f} ({low:.3f} to {high:.3f})" in line
    assert line.endswith("of 0.25, 0.4, 0.75")


def test_a_star_stands_for_every_key(lines: Callable[[str], list[str]]) -> None:
    assert [line.split()[0] for line in lines("costs.*.0.value")] == ["a", "b"]
