"""Groups: models of the same data are drawn as one, with models as the runs; others side by side."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import subjects
from headcount.record import Record
from headcount.report.figure import draw
from headcount.report.groups import group_name, grouped
from records import changed, encode, roles, tradeoff


def on(data: str, record: Record) -> Record:
    return replace(record, signature=replace(record.signature, data=data))


def test_models_of_the_same_data_belong_together() -> None:
    records = [on("x", roles("a/m-0")), on("y", roles("a/n")), on("x", roles("a/m-1")), on("", roles("a/o"))]
    assert [group_name(group, records) for group in grouped(records)] == ["m (2 models)", "n", "o"]
    assert len(grouped([on("x", roles("a/m")), on("x", roles("a/m"))])) == 2, "a model beside itself"
    copy = [replace(record, signature=replace(record.signature, weights="w")) for record in records[:3:2]]
    assert len(grouped(copy)) == 2, "a copy is no further model"


def test_panels_of_models_of_the_same_name_are_told_apart() -> None:
    one, other = on("x", tradeoff("first/m")), on("y", tradeoff("second/m"))
    for figure in ("tradeoff", "kept-by-kind", "kept-by-layer", "kept-roles"):
        titles = [axes.get_title() or axes.get_title("left") for axes in draw(figure, [one, other]).canvas.axes]
        assert [title.split(",")[0] for title in titles if title] == ["first/m", "second/m"], figure


def test_kinds_of_several_models_are_one_panel_with_their_mean() -> None:
    one, other = on("x", tradeoff("m-0")), on("x", tradeoff("m-1"))
    turned = [
        replace(point, kept_by_kind=dict(zip(point.kept_by_kind, reversed(point.kept_by_kind.values()), strict=True)))
        for point in other.parts.points
    ]
    other = replace(other, parts=replace(other.parts, points=tuple(turned)))
    apart = draw("kept-by-kind", [one, on("y", other)])
    together = draw("kept-by-kind", [one, other])
    assert [len(drawing.canvas.axes) for drawing in (apart, together)] == [2, 1]

    def kept(drawing_rows: list, model: str) -> dict:
        return {(row["kind"], row["left"]): row["kept"] for row in drawing_rows if row["model"] == model}

    first, second = kept(list(apart.rows), "m-0"), kept(list(apart.rows), "m-1")
    mean = kept(list(together.rows), "m (2 models)")
    assert mean
    for key, value in mean.items():
        assert value == pytest.approx((first[key] + second[key]) / 2)
    assert any(row["low"] < row["kept"] < row["high"] for row in together.rows)
    assert all(row["low"] >= 0 and row["high"] <= row["of"] for row in together.rows), "no more heads than there are"


def test_models_that_keep_equally_many_heads_of_a_kind_may_do_so_by_chance() -> None:
    """Two models with 2 of 4 heads left had a band from 2 to 2, which says that every model keeps 2."""
    one, other = on("x", tradeoff("m-0")), on("x", tradeoff("m-1"))
    rows = [dict(row) for row in draw("kept-by-kind", [one, other]).rows]
    total = sum(one.parts.of.values())
    assert {row["left"] for row in rows} > {total}
    for row in rows:
        assert (row["low"] == row["kept"] == row["high"]) == (row["left"] == total), "all heads of the whole model"
    fixed = [replace(record, parts=replace(record.parts, pruned="decoder and cross heads")) for record in (one, other)]
    rows = [dict(row) for row in draw("kept-by-kind", fixed).rows]
    assert all(row["low"] == row["kept"] == row["high"] for row in rows if row["kind"] == "encoder")
    assert any(row["low"] < row["high"] for row in rows)


def test_of_models_with_heads_of_one_kind_no_number_left_is_chance() -> None:
    """With 2 heads left in all, of models of one kind, 2 of this kind are left: it had a band up to 4.6."""
    sites = subjects.even(2, 4, ("encoder",))
    given = [on("x", subjects.tradeoff(sites, name, pruned="encoder heads")) for name in ("m-0", "m-1")]
    rows = [dict(row) for row in draw("kept-by-kind", given).rows]
    assert {row["models"] for row in rows} == {2}
    assert all(row["low"] == row["left"] == row["high"] for row in rows)


def test_layers_of_several_models_are_their_mean() -> None:
    one, other = on("x", tradeoff("m-0")), on("x", tradeoff("m-1"))
    without = [replace(point, heads=()) for point in other.parts.points]
    other = replace(other, parts=replace(other.parts, points=tuple(without)))
    apart = [row for row in draw("kept-by-layer", [one]).rows if not row["seed"]]
    together = draw("kept-by-layer", [one, other]).rows
    alone = {(row["keep"], row["site"]): row["left"] for row in apart}
    assert {(row["keep"], row["site"]): row["left"] for row in together} == pytest.approx(
        {key: left / 2 for key, left in alone.items()}
    )


def test_shares_of_several_models_end_at_0_and_1() -> None:
    some = []
    for model, share in (("m-0", 0.2), ("m-1", 0.95)):
        record = on("x", roles(model))
        some.append(changed(record, best=[{**row, "value": share} for row in encode(record.parts)["best"]]))
    lines = draw("syntactic-heads", some).canvas.axes[0].collections
    ends = [point[1] for line in lines for path in line.get_paths() for point in path.vertices]
    assert ends
    assert all(0 <= end <= 100 for end in ends)


def test_relations_of_several_models_are_one_bar() -> None:
    one, other, german = on("x", roles("m-0")), on("x", roles("m-1", seed=1)), on("y", roles("german"))
    drawing = draw("syntactic-heads", [one, other, german])
    names = [text.get_text() for text in drawing.canvas.axes[0].get_legend().get_texts()]
    assert set(names) == {"m (2 models)", "german", "best fixed offset"}
    assert {row["model"] for row in drawing.rows} == {"m-0", "m-1", "german"}
    assert "over models" in drawing.caption


@pytest.mark.parametrize("other", ["n", "m-b", "checkpoint-200"])
def test_models_that_differ_by_more_than_a_seed_are_side_by_side(other: str) -> None:
    first = "checkpoint-100" if other.startswith("checkpoint") else "m-a"
    for figure, made in (("syntactic-heads", roles), ("kept-by-kind", tradeoff), ("kept-by-layer", tradeoff)):
        drawing = draw(figure, [on("x", made(first)), on("x", made(other))])
        assert {row["model"] for row in drawing.rows} == {first, other}, figure
        assert not re.search("over models|several models|models of the same data", drawing.caption), figure
    legend = draw("syntactic-heads", [on("x", roles(first)), on("x", roles(other))]).canvas.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()][1:] == [first, other]


def test_epochs_of_one_training_are_in_no_mean() -> None:
    epochs = [on("x", roles(f"run-0/epochs/{epoch}")) for epoch in ("0.25", "0.5", "001", "002")]
    assert [len(group) for group in grouped(epochs)] == [1, 1, 1, 1]
    assert len(grouped([on("x", roles(f"run-{seed}/epochs/001")) for seed in (0, 1)])) == 1, "an epoch of two trainings"


def test_models_of_another_shape_are_in_no_mean() -> None:
    records = [on("x", subjects.roles(subjects.even(layers, 4), f"m-{at}")) for at, layers in enumerate((1, 2, 2))]
    records = [replace(record, signature=replace(record.signature, weights="")) for record in records]
    assert [len(group) for group in grouped(records)] == [1, 2]


def test_a_group_always_has_a_name() -> None:
    for models, name in ((("runs/0", "runs/1"), "runs"), (("0", "1"), "0")):
        records = [on("x", roles(model)) for model in models]
        assert group_name(records, records) == f"{name} (2 models)"
