"""Figures beside a record show its numbers."""

from __future__ import annotations

from pathlib import Path

import subjects as made
from headcount.report.figure import remove_outdated


def test_figures_of_other_numbers_do_not_stay_beside_a_record(tmp_path: Path) -> None:
    folder, file = tmp_path / "figures", tmp_path / "record.json"
    folder.mkdir()
    names = {"ablation-map.svg", "ablation-map.csv", "transfer.png", "mine.svg"}
    for name in names:
        (folder / name).write_text(name)
    first, other = made.ablation(made.ONE_LAYER), made.ablation(made.even(2, 4))
    remove_outdated(folder, file, first)  # nothing is replaced
    first.save(file)
    remove_outdated(folder, file, first)  # the same numbers
    assert {path.name for path in folder.iterdir()} == names
    remove_outdated(folder, file, other)
    assert {path.name for path in folder.iterdir()} == {"mine.svg"}
