"""Records that differ in what a table says of all its rows stand in tables of their own."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import records
import subjects as made
from headcount.record import Record
from headcount.record.codec import encode
from headcount.report.figure import draw, write
from headcount.report.section import all_tables, sections
from headcount.report.table import Table

SITES = made.even(2, 4)
MEASURED = {  # section -> a record with a metric
    "ablation": made.ablation(SITES),
    "agreement": made.agreement(SITES),
    "alone": made.ablation(SITES),
    "all_kinds": made.tradeoff(SITES),
    "compensation": made.compensation(),
    "curves": made.curves(SITES),
    "dynamics": records.dynamics(),
    "kinds": made.curves(SITES),
    "replacement": made.replacement(SITES),
    "tradeoff": made.tradeoff(SITES),
}


def of(name: str, *labelled: tuple[str, Record]) -> list[Table]:
    return all_tables(sections[name], labelled)


def words(table: Table) -> str:
    return " ".join([table.title, table.note, *(column.name for column in table.columns)])


@pytest.mark.parametrize("name", MEASURED)
def test_values_stand_under_their_own_metric(name: str) -> None:
    record = MEASURED[name]
    other = records.changed(record, metric="perplexity")
    alone = [table.title for table in of(name, ("a", record)) if "Beside" not in table.title]
    tables = [table for table in of(name, ("a", record), ("b", record), ("c", other)) if "Beside" not in table.title]
    assert [table.title for table in tables[: len(alone)]] == alone, "two of one metric share a table"
    assert [table.columns[0].name for table in tables[: len(alone)]] == ["model"] * len(alone)
    assert {row[0] for table in tables[: len(alone)] for row in table.rows} == {"a", "b"}
    assert all(table.title.endswith(", c") for table in tables[len(alone) :]), "a table of one record names it"
    assert not any("BLEU" in words(table) for table in tables[len(alone) :])


def test_roles_that_were_played_and_qualities_of_timed_models_too() -> None:
    record = made.roles(SITES)
    other = records.changed(record, played={**encode(record.parts.played), "metric": "perplexity"})
    titles = [table.title for table in of("played", ("a", record), ("b", other))]
    assert titles == [
        "Heads replaced by their roles, change of loss, a", "Heads replaced by their roles, change of perplexity, b",
    ]  # fmt: skip

    def measured(metric: str) -> Record:
        change: dict[str, Any] = {"difference": 0.0, "difference_low": 0.0, "difference_high": 0.0}
        quality = {**records.quality(30.0), **change, "metric": metric}
        return records.changed(records.speed(), quality=dict.fromkeys(("shop/model-a", "shop/model-b"), quality))

    tables = of("speed", ("a", measured("BLEU")), ("b", measured("loss")))
    assert [table.title for table in tables[:4]] == [
        "Speed side by side", "Size", "Size, speed and quality, a", "Size, speed and quality, b",
    ]  # fmt: skip
    assert tables[3].columns[4].name == "loss"


def test_smaller_models_say_their_metric_where_it_differs() -> None:
    one = made.pruned(SITES)
    quality = encode(one.parts.quality)
    loss = {name: {**value, "metric": "loss"} if value else None for name, value in quality.items()}
    other = records.changed(one, metric="loss", quality=loss)
    (same, *_), (table, *_) = of("pruned", ("a", one), ("b", one)), of("pruned", ("a", one), ("b", other))
    assert "metric" not in [column.name for column in same.columns]
    at = [column.name for column in table.columns].index("metric")
    assert [row[at] for row in table.rows] == ["BLEU", "loss"]


def test_every_model_has_its_own_number_of_heads_where_quality_is_lost() -> None:
    one = made.compensation()
    later = records.changed(one, at={**encode(one.parts.at), "removed": 9})
    table = next(table for table in of("compensation", ("a", one), ("b", later)) if "first lost" in table.title)
    at = [column.name for column in table.columns].index("heads gone")
    assert {(row[0], row[at]) for row in table.rows} == {("a", 4), ("b", 9)}


def test_epochs_pruned_by_other_shares_have_columns_of_their_own() -> None:
    record = records.dynamics()
    epochs = [{**epoch, "points": epoch["points"][::2]} for epoch in encode(record.parts)["by_epoch"]]
    fewer = of("dynamics", ("a", record), ("b", records.changed(record, by_epoch=epochs)))[1]
    assert [column.name for column in fewer.columns[2:]] == ["40% gone", "80% gone"]


def test_heads_chosen_on_other_data_do_not_stand_under_the_same_data() -> None:
    here = made.ablation(SITES)
    held_out, same = of("alone", ("a", records.changed(here, alone_held_out=True)), ("b", here))[:2]
    assert "change, held out" in words(held_out)
    assert "change, same data" in words(same)


def test_qualities_of_sweeps_stand_under_their_own_metric() -> None:
    record = made.sweep(SITES)
    sweep = encode(record.parts)["sweep"]
    for point in sweep.values():
        for quality in filter(None, point["quality"].values()):
            quality["metric"] = "perplexity"
    tables = [
        table
        for table in of("sweep", ("a", record), ("b", records.changed(record, sweep=sweep)))
        if "One" in table.title
    ]
    assert ["perplexity" in words(table) for table in tables] == [False, True]


def test_the_share_that_was_masked_is_the_one_that_was_measured() -> None:
    record = records.dynamics()
    epochs = [{**epoch, "points": epoch["points"][::3]} for epoch in encode(record.parts)["by_epoch"]]
    steps = [f"{100 * point['share']:.0f}%" for point in epochs[0]["points"]]
    assert "40%" not in steps
    answer = sections["dynamics"].answer(records.changed(record, by_epoch=epochs))
    assert answer.startswith(f"With {steps[1]} of the heads masked")


def _worse_loss() -> Record:
    epochs = [
        {
            **epoch, "epoch": 9 + number, "value": 2.0,
            "points": [{**point, "value": 2.0 + point["share"]} for point in epoch["points"]],
        }
        for number, epoch in enumerate(encode(records.dynamics().parts)["by_epoch"])
    ]  # fmt: skip
    return records.changed(records.dynamics(), metric="loss", higher_is_better=False, by_epoch=epochs)


def test_the_figure_of_training_shows_a_worse_loss_as_one(tmp_path: Path) -> None:
    """ "% of the epoch's own loss kept: 55" of a loss that is 1.82 times as large."""
    files = {file.suffix: file for file in write("dynamics", [_worse_loss()], tmp_path, ["svg"])}
    rows = list(csv.DictReader(files[".csv"].open(encoding="utf-8")))
    assert all(float(row["times_unpruned"]) == pytest.approx(float(row["value"]) / 2.0) for row in rows)
    assert "kept_share" not in rows[0]
    drawn = files[".svg"].read_text(encoding="utf-8")
    assert "loss / loss with all heads" in drawn
    assert "kept" not in drawn


def test_a_loss_without_heads_is_a_multiple_of_that_with_all_and_no_share_that_is_kept() -> None:
    """ "keeps 84% of its own loss", though the loss was worse."""
    record, section = _worse_loss(), sections["dynamics"]
    assert section.answer(record) == (
        "With 40% of the heads masked, the loss of the model of epoch 9 is 1.20 times that with all heads, of the "
        "model of epoch 11 1.20 times; lower is better."
    )
    (table,) = section.tables([("m", record)])
    assert table.title == "loss over that of the epoch with all heads"
    assert [row[-1] for row in table.rows] == [1.5] * 3
    (kept,) = (row for row in section.printed(record) if "kept" in row.what)
    assert kept.ours == "1.20 times its loss with 40% at epoch 10, 1.20 times its loss with 40% at epoch 11"


def test_one_corpus_that_two_models_read_is_left_out_once() -> None:
    record = records.changed(made.roles(SITES), skipped={"empty": 5})
    (table,) = [table for table in of("roles", ("a", record), ("b", record)) if table.title == "Heads by role"]
    assert table.note == "Left out: 5 (empty)."


def test_the_cost_of_every_model_is_named() -> None:
    titles = [table.title for table in of("inspection", ("a", made.inspection()), ("b", made.inspection()))]
    assert titles == ["Sites", "What one example costs, a", "What one example costs, b"]
    assert of("inspection", ("a", made.inspection()))[1].title == "What one example costs"


@pytest.mark.parametrize(
    ("figure", "record"),
    [
        ("ablation-map", records.ablation()), ("ablation-histogram", records.ablation()),
        ("pruning-curves", records.curves()), ("pruning-by-kind", records.curves()),
        ("tradeoff", records.tradeoff()), ("tradeoff-time", records.tradeoff()),
    ],
)  # fmt: skip
def test_captions_name_the_metrics_of_all_panels(figure: str, record: Record) -> None:
    caption = draw(figure, [record, record, records.changed(record, metric="perplexity")]).caption
    assert "BLEU and perplexity" in caption
    assert "BLEU and perplexity" not in draw(figure, [record]).caption


def test_captions_have_the_settings_of_all_panels() -> None:
    one = records.ablation()
    assert "* p < 0.01 and 0.05 after" in draw("ablation-map", [one, records.changed(one, alpha=0.05)]).caption
    curves = records.curves()
    by_loss = [{**line, "order": "loss"} for line in encode(curves.parts)["by_kind"]]
    caption = draw("pruning-by-kind", [curves, records.changed(curves, by_kind=by_loss)]).caption
    assert "lowest first by gradient and loss" in caption
