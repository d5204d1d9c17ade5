"""Figures beside a record show its numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import records
import subjects as made
from headcount.record import Record, Signature
from headcount.record.codec import encode
from headcount.record.results.pool import Pool
from headcount.report.figure import draw, named, remove_outdated, write
from records import SAMPLES


def test_figures_of_other_numbers_do_not_stay_beside_a_record(tmp_path: Path) -> None:
    folder, file = tmp_path / "figures", tmp_path / "record.json"
    folder.mkdir()
    names = {"ablation-map.svg", "ablation-map.csv", "ablation-map.txt", "speed.csv", "mine.svg"}
    for name in names:
        (folder / name).write_text(name)
    first, other = made.ablation(made.ONE_LAYER), made.ablation(made.even(2, 4))
    remove_outdated(folder, file, first)  # nothing is replaced
    first.save(file)
    remove_outdated(folder, file, first)  # the same numbers
    assert {path.name for path in folder.iterdir()} == names
    remove_outdated(folder, file, other)
    assert {path.name for path in folder.iterdir()} == {"speed.csv", "mine.svg"}, "files of the user"


def test_figures_of_the_user_stay(tmp_path: Path) -> None:
    """Without numbers and caption beside them, files with the names of figures are not those of headcount."""
    own = {"ablation-map.svg": "my drawing", "ablation-map.txt": "my notes"}
    for name, text in own.items():
        (tmp_path / name).write_text(text)
    for _ in range(2):  # the second figure replaces the first
        write("ablation-map", [made.ablation(made.ONE_LAYER)], tmp_path, ["svg"])
        assert {name: (tmp_path / f"{name}.old").read_text() for name in own} == own
        assert "<svg" in (tmp_path / "ablation-map.svg").read_text()
        assert len([*tmp_path.iterdir()]) == 5


def test_a_figure_that_was_interrupted_after_its_numbers_is_drawn_again(tmp_path: Path) -> None:
    """Without its caption, the table of numbers was taken for a file of the user."""
    write("ablation-map", [made.ablation(made.ONE_LAYER)], tmp_path, ["svg"])
    names = {path.name for path in tmp_path.iterdir()}
    for name in ("ablation-map.svg", "ablation-map.txt"):
        (tmp_path / name).unlink()
    table = tmp_path / "ablation-map.csv"
    table.write_text(table.read_text().partition("\n")[0] + "\nother,numbers\n")  # as times are in each run
    write("ablation-map", [made.ablation(made.ONE_LAYER)], tmp_path, ["svg"])
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "other,numbers" not in table.read_text()


def test_a_pool_has_the_names_of_its_models() -> None:
    models = {"my models/tr-1": "tr-1", "my models/tr-2/": "tr-2"}
    signature = Signature(" ".join(models))
    row = next(iter(made.specialisation().parts.models.values()))
    specialised = records.changed(made.specialisation(), models=dict.fromkeys(models, records.encode(row)))
    ledger = records.changed(made.ledger(), models=list(models))
    pool = Pool("voita2019", {model: made.ablation(made.ONE_LAYER, model) for model in models}, ledger)
    for parts in (specialised.parts, ledger.parts, pool):
        assert named(Record("pooled", signature, parts)) == "tr-1 + tr-2"
    assert named(made.ablation(made.ONE_LAYER, "my models/tr-2/")) == "tr-2"
    assert named(made.ledger("shop/model-a")) == "model-a"
    assert named(made.ablation(made.ONE_LAYER, "")) == "model"


@pytest.mark.parametrize("name", ["dynamics", "transfer"])
def test_panels_of_several_models_name_them(name: str) -> None:
    (one,) = records.SAMPLES[name]
    models = ("first/model-a", "second/model-a")
    some = [replace(one, signature=replace(one.signature, model=model)) for model in models]
    drawing = draw(name, some)
    titles = [plot.get_title().split("\n")[0] for plot in drawing.canvas.axes]
    assert list(dict.fromkeys(titles)) == list(models)
    assert {row["model"] for row in drawing.rows} == set(models)


def test_columns_of_heads_left_add_up_to_their_labels() -> None:
    drawing = draw("kept-by-layer", [records.changed(made.tradeoff(made.even(2, 4), pruned="encoder heads"))])
    (plot,) = drawing.canvas.axes
    labels = [label.get_text() for label in plot.get_xticklabels()]
    sums = plot.images[0].get_array().sum(0).tolist()
    assert labels == ["all", *(f"{number:g}" for number in sums[1:])]


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"hard-concrete"}))
def test_the_data_of_every_figure_say_which_data_they_are_of(name: str) -> None:
    record = replace(SAMPLES[name][0], signature=replace(SAMPLES[name][0].signature, data="a1b2c3", arguments={}))
    rows = draw(name, [record]).rows
    assert rows
    assert {row["data"] for row in rows} <= {"a1b2c3", "data"}


@pytest.mark.parametrize("name", ["ablation-map", "ablation-histogram", "pruning-curves", "tradeoff", "kept-by-kind"])
def test_one_model_on_two_data_sets_is_told_apart(name: str) -> None:
    first = replace(SAMPLES[name][0], signature=replace(SAMPLES[name][0].signature, data="a1b2c3"))
    second = replace(first, signature=replace(first.signature, data="d4e5f6", arguments={"data": "texts/film test"}))
    titles = [axes.get_title() or axes.get_title("left") for axes in draw(name, [first, second]).canvas.axes]
    assert [sum(data in title for title in titles) for data in (", data a1b2c3", ", film test")] == [1, 1]
    assert not any("data" in axes.get_title() for axes in draw(name, [first]).canvas.axes)


def test_positions_of_dependents_are_drawn_once_for_several_models() -> None:
    one, other = (replace(records.roles(model), signature=Signature(model, data="a1")) for model in ("m", "n"))
    bars = [len(draw("relative-positions", some).canvas.axes[0].patches) for some in ([one], [one, other])]
    assert bars[0] == bars[1]


@pytest.mark.parametrize(
    "name",
    [
        "ablation-histogram",
        "ablation-map",
        "dynamics",
        "pruning-by-kind",
        "pruning-curves",
        "tradeoff",
        "tradeoff-time",
    ],
)
def test_one_model_by_two_metrics_is_told_apart(name: str) -> None:
    one = SAMPLES[name][0]
    rows = draw(name, [one, records.changed(one, metric="chrF")]).rows
    halves = len(rows) // 2
    assert [row["metric"] for row in rows] == [*["BLEU"] * halves, *["chrF"] * halves]


def test_texts_of_the_same_name_are_told_apart() -> None:
    paths = ("news/dev.conllu", "films/dev.conllu")
    first, second = (replace(records.roles(), signature=Signature("m", arguments={"data": path})) for path in paths)
    drawing = draw("relative-positions", [first, records.changed(second, relative={"nsubj v->s": {"3": 1}})])
    assert [text.get_text() for text in drawing.canvas.legends[0].get_texts()] == list(paths)
    assert {row["data"] for row in drawing.rows} == set(paths)


def test_numbers_below_the_histogram_do_not_overlap() -> None:
    """An accuracy of 200 texts has steps of .005: labels of four digits."""
    one = records.ablation()
    effects = {
        head: {**encode(effect), "difference": 0.005 * (at % 5 - 2), "value": 0.755 + 0.005 * (at % 5 - 2)}
        for at, (head, effect) in enumerate(one.parts.one_out.items())
    }
    drawing = draw("ablation-histogram", [records.changed(one, metric="accuracy", value=0.755, one_out=effects)])
    (plot,) = drawing.canvas.axes
    drawing.canvas.draw_without_rendering()
    low, high = plot.get_xlim()
    labels = [label for label in plot.get_xticklabels() if low <= label.get_position()[0] <= high]
    extents = [label.get_window_extent() for label in labels]
    assert len(extents) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(extents))
    assert all(tick == int(tick) for tick in plot.get_yticks()), "heads are whole"


def test_titles_of_maps_do_not_overlap() -> None:
    one = made.ablation(made.ONE_LAYER)
    data = ("news.tsv, one half", "films.tsv, the other half")
    some = [replace(one, signature=Signature("m", "w", name, arguments={"data": name})) for name in data]
    drawing = draw("ablation-map", [records.changed(record, metric="accuracy") for record in some])
    drawing.canvas.draw_without_rendering()
    extents = [plot.title.get_window_extent() for plot in drawing.canvas.axes]
    assert extents[0].x1 < extents[1].x0
    assert extents[1].x1 <= drawing.canvas.bbox.x1


def test_titles_of_kept_roles_are_on_the_picture() -> None:
    gates = {"settled": 0.2, "reached": None, "cut_by_rank": 0}
    one = records.tradeoff(kinds=False)
    points = [{**encode(point), "gates": gates} for point in one.parts.points]
    some = [records.changed(one, points=points, pruned="heads of all kinds") for _ in range(2)]
    drawing = draw("kept-roles", some)
    drawing.canvas.draw_without_rendering()
    titles = [plot.title if plot.get_title() else plot._left_title for plot in drawing.canvas.axes]
    extents = [title.get_window_extent() for title in titles]
    assert extents[0].x1 < extents[1].x0
    assert extents[1].x1 <= drawing.canvas.bbox.x1


def test_panels_of_seconds_name_the_heads_that_were_pruned() -> None:
    (one,) = records.SAMPLES["tradeoff-time"]
    titles = [
        plot.get_title() for plot in draw("tradeoff-time", [records.changed(one, pruned="encoder heads")]).canvas.axes
    ]
    assert all("encoder heads left" in title for title in titles if title)


def test_titles_of_panels_of_seconds_do_not_overlap() -> None:
    """Panels of models called a-name-of-26-letters-in-all lay over each other from `2 of 48 encoder heads left` on."""
    (one,) = records.SAMPLES["tradeoff-time"]
    some = [
        replace(
            records.changed(one, pruned="encoder heads"), signature=Signature(f"a-name-of-26-letters-in-all-{name}")
        )
        for name in "ab"
    ]
    drawing = draw("tradeoff-time", some)
    drawing.canvas.draw_without_rendering()
    extents = [plot.title.get_window_extent() for plot in drawing.canvas.axes if plot.get_title()]
    rows = [pair for pair in pairwise(extents) if abs(pair[0].y0 - pair[1].y0) < 1]
    assert rows
    assert all(left.x1 < right.x0 for left, right in rows)


def test_gates_of_a_short_training_are_seen() -> None:
    (one,) = records.SAMPLES["gates-course"]
    details = encode(one.parts.choice_details)
    short = {**details, "gates": {**details["gates"], "trace": details["gates"]["trace"][:1]}}
    course, last, scale = draw("gates-course", [records.changed(one, choice_details=short)]).canvas.axes
    assert all(line.get_marker() == "o" for line in course.lines)
    assert last.images[0].get_clim() == scale.get_ylim() == (0, 1), "a gate is between 0 and 1"
