"""What every figure promises: it draws, says what it shows, gives its numbers, and is the same file every time."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.errors import UnknownName, UsageError
from headcount.record import Record, Signature
from headcount.report.figure import FORMATS, _csv, draw, figures, fitting, write
from records import SAMPLES, ablation


def test_every_figure_is_tried() -> None:
    assert set(SAMPLES) == set(figures)


@pytest.mark.parametrize("name", figures)
def test_it_writes_pictures_a_caption_and_its_numbers_the_same_every_time(name: str, tmp_path: Path) -> None:
    formats = FORMATS if name == figures.names()[0] else ["svg"]  # matplotlib writes every figure in the same way
    files = {file.suffix: file for file in write(name, SAMPLES[name], tmp_path, formats)}
    assert set(files) == {".csv", ".txt", *(f".{suffix}" for suffix in formats)}
    assert "<svg" in files[".svg"].read_text(encoding="utf-8")
    assert files[".txt"].read_text(encoding="utf-8").strip().endswith(".")
    assert len(list(csv.DictReader(files[".csv"].open(encoding="utf-8")))) > 1
    assert figures[name].title
    assert figures[name].shows
    drawn = draw(name, SAMPLES[name])
    assert [file.read_text(encoding="utf-8") for file in (files[".txt"], files[".csv"])] == [
        drawn.caption + "\n", _csv(drawn.rows)
    ]  # fmt: skip
    if name == figures.names()[0]:  # pictures of the others are drawn again by the next test
        for again in write(name, SAMPLES[name], tmp_path / "again", formats):
            assert again.read_bytes() == files[again.suffix].read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", figures.names()[1:])
def test_its_picture_is_the_same_every_time(name: str, tmp_path: Path) -> None:
    """That of the first is drawn twice above."""
    once, again = (
        {file.name: file.read_bytes() for file in write(name, SAMPLES[name], tmp_path / folder, ["svg"])}
        for folder in ("once", "again")
    )
    assert once == again


def test_every_format_is_what_it_says(tmp_path: Path) -> None:
    name = figures.names()[0]
    files = {file.suffix: file for file in write(name, SAMPLES[name], tmp_path)}
    assert set(files) == {".png", ".svg", ".pdf", ".csv", ".txt"}
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    assert files[".pdf"].read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", figures)
def test_a_record_without_its_parts_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="needs"):
        draw(name, [Record("other", Signature(), {})])


def test_unknown_figures_and_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="ablation-map"):
        draw("ablation-mop", [ablation()])
    with pytest.raises(UnknownName, match="png"):
        write("ablation-map", [ablation()], tmp_path, ["gif"])
    assert not list(tmp_path.iterdir())


def test_two_records_stand_side_by_side() -> None:
    drawing = draw("ablation-map", [ablation(), ablation("shop/model-b", seed=7)])
    assert [plot.get_title().partition("\n")[0] for plot in drawing.canvas.axes] == ["model-a", "model-b"]
    assert len(drawing.rows) == 2 * len(ablation().parts.one_out)


def test_figures_of_a_record_are_known() -> None:
    assert {"ablation-map", "ablation-histogram", "transfer"} <= set(fitting(ablation()))


def test_figures_need_no_torch(tmp_path: Path) -> None:
    record = ablation().save(tmp_path / "record.json")
    arguments = ["figure", "all", str(record), "--out", str(tmp_path)]
    check = "import sys; assert 'torch' not in sys.modules"
    code = f"from headcount.cli.main import main; main({arguments!r}, standalone_mode=False); {check}"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (tmp_path / "ablation-map.svg").is_file()
