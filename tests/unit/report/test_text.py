"""What commands print is their section of the report: nothing is cut at any width, and many heads are few lines."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import records
import subjects as made
from headcount.record import Record, Signature
from headcount.record.codec import encode
from headcount.record.result import Step
from headcount.report.figure import draw
from headcount.report.html import page
from headcount.report.measured import ends_of
from headcount.report.section import labelled_for, ordered
from headcount.report.sections.curves import limit, share_to_try, unharmed, unharmed_text
from headcount.report.sections.roles import heads_by_role
from headcount.report.subject import Subject
from headcount.report.table import Column, Table, parts_of_variance
from headcount.report.text import show, show_result, terminal_table
from headcount.statistics import Interval, pearson
from records import evidence
from screens import WIDTHS, check_whole, screen


def pruned(heads: int) -> Record:
    record = made.pruned(made.even(12, heads))
    site = {"rho": 0.0123, "unchanged": False, "explained_without": 0.912, "explained": 0.987}
    fitted = {
        "method": "lstsq",
        "data": "",
        "rows": 12345,
        "sites": {f"decoder.{layer}": site for layer in range(heads)},
    }
    costs = {"before": made.COST, "after": made.COST}
    return records.changed(record, compensation={**fitted, "quality": records.quality(30.0)}, cost=costs)


def compared(heads: int) -> Record:
    row = {"way": "rank-gradient+lstsq/distilled", "keep": heads, "seeds": [0, 1]}
    row |= dict.fromkeys(("lost", "lost_tuned", "against"), records.difference(-0.58))
    return records.changed(records.tradeoff(), compared=[row], against="rank-gradient")


SECTIONS = dict(ordered())
RESULTS: dict[str, Callable[[int], Record]] = {
    "ablate": lambda heads: made.ablation(made.even(12, heads)),
    "ablate elsewhere": lambda _: records.ablation(),
    "score": lambda heads: made.score(made.even(12, heads)),
    "curves": lambda _: records.curves(),
    "dynamics": lambda _: records.dynamics(),
    "bench": lambda _: records.speed(),
    "rules": lambda heads: made.rules(made.even(1, heads)),
    "compensation": lambda _: made.compensation(),
    "tradeoff": compared,
    "prune": pruned,
    "prune-sweep": lambda heads: made.sweep(made.even(1, heads)),
    "train": lambda _: made.training(),
    "inspect": lambda heads: made.inspection(heads=heads),
    "evaluate": lambda _: made.evaluation(),
    "attention": records.attention,
    "examples": lambda heads: made.examples(made.even(1, heads), ["the", "cat", "sees", "me"]),
    "explore": lambda _: made.explored(),
    "roles": lambda heads: made.roles(made.even(3, heads, ("decoder",))),
    "specialisation": lambda _: made.specialisation(),
    "ledger": lambda _: made.ledger(),
    "agreement": lambda heads: made.agreement(made.even(1, heads)),
    "study replacement": lambda heads: made.replacement(made.even(1, heads)),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_cut(name: str, width: int) -> None:
    record = RESULTS[name](32)
    sections = [section for section in SECTIONS.values() if section.fits(record)]
    assert sections
    for section in sections:
        labelled = [("model-a", record)]
        sketch = section.sketch(record)
        if sketch is not None and name == "attention":  # maps of heads have their own tests
            check_whole(sketch, width)
        for table in section.tables(labelled):
            check_whole(terminal_table(table.shortened("--all prints every head")), width)


def test_every_section_is_tried() -> None:
    """But that of two records together, which no command prints."""
    every = [make(2) for make in RESULTS.values()]
    tried = {name for name, section in SECTIONS.items() if any(section.fits(record) for record in every)}
    assert set(SECTIONS) - tried == {"role-importance"}


def printed(record: Record, *, whole: bool = False, width: int = 120) -> str:
    console = Console(width=width, file=io.StringIO(), record=True, highlight=False)
    show_result(console, record, all_rows=whole)
    return console.export_text()


def test_a_result_is_its_sections_of_the_report() -> None:
    record = made.curves(made.even(2, 4))
    text = " ".join(printed(record).split())
    for section in SECTIONS.values():
        answers = [section.answer(found) for _, found in labelled_for(section, [Subject("m", [record])])]
        assert all(section.question in text and answer in text for answer in answers)
    assert text.startswith("Measured on 20 texts of test, held out: heads were chosen on 20 texts of dev.")
    assert str(record.signature) in text


def test_the_report_says_of_every_record_what_it_was_measured_on() -> None:
    """As a result does; once where it is true of all records, else of each."""
    held_out, seen = made.curves(made.ONE_LAYER), made.evaluation("shop/model-b")
    seen = records.changed(seen, measured_on={**records.MEASURED_ON, "overlap": 20, "held_out": False})
    for text in (shown([held_out, seen]), " ".join(page([held_out, seen]).split())):
        assert "Measured on 20 texts of test, held out: heads were chosen on 20 texts of dev." in text
        assert "NOT held out: measured on 20 texts of test, the same that heads were chosen on." in text
    both = shown([seen, records.changed(made.evaluation("shop/model-a"), measured_on=records.MEASURED_ON)])
    assert "model-b: NOT held out" in both
    assert "model-a: Measured on 20 texts of test, held out" in both
    assert 'class="note warning">NOT held out' in page([seen])


def shown(some: list[Record]) -> str:
    console = Console(width=120, file=io.StringIO(), record=True, highlight=False)
    show(console, some, tables=False)
    return " ".join(console.export_text().split())


@pytest.mark.parametrize("name", ["ablate", "score", "roles"])
def test_hundreds_of_heads_are_few_lines(name: str) -> None:
    record = {"ablate": made.ablation, "score": made.score, "roles": made.roles}[name](made.even(12, 16))
    brief, whole = printed(record), printed(record, whole=True)
    assert "--all prints every head" in brief
    assert "--all" not in whole
    assert len(brief.splitlines()) < 200
    assert len(whole.splitlines()) > 576


def test_both_ends_of_a_ranking_and_the_first_of_each_group() -> None:
    rows = [[f"head {index}", index] for index in range(144)]
    short = Table("t", [Column("head"), Column("n")], rows, "Note.", ranked=True).shortened("see there")
    assert [row[1] for row in short.rows] == [*range(10), *range(134, 144)]
    assert short.note == "Note. The first 10 and the last 10 of 144 heads; see there."
    grouped = [[role, index] for role in ("positional", "rare") for index in range(12)]
    short = Table("t", [Column("role"), Column("n")], [*grouped, ["none", 0]], grouped=True).shortened("see there")
    assert [row[1] for row in short.rows] == [*range(10), *range(10), 0]
    few = Table("t", [Column("head")], rows[:24], ranked=True)
    assert few.shortened("see there") is few


def test_roles_with_their_clearest_heads_first() -> None:
    parts = encode(made.roles(made.even(3, 12, ("decoder",))).parts)
    parts["roles"] = {
        name: [records.evidence("positional", "-1", 0.5 + place / 100)] for place, name in enumerate(parts["roles"])
    }
    record = records.typed("roles", Signature("m"), parts)
    heads = heads_by_role(record.parts)["positional"]
    assert list(heads)[:2] == ["decoder.2.11", "decoder.2.10"]
    text = screen(terminal_table(SECTIONS["roles"].tables([("m", record)])[0]), 100)
    assert "positional     36  decoder.2.11" in text
    assert text.splitlines()[-1].split()[:3] == ["no", "role", "0"]


def test_speed_is_the_paired_ratio_and_medians_are_named() -> None:
    """Medians say 1.0 times as fast here, paired repeats 1.2: the answer and the first number are the latter."""
    record = records.speed()
    (table, _) = SECTIONS["speed"].tables([("model-a", record)])
    names = [column.name for column in table.columns]
    assert names[4:] == ["times as fast", "95% interval", "median ms", "median per second"]
    assert [row[4:6] for row in table.rows[:2]] == [[None, "reference"], [1.2, "1.10 to 1.30"]]
    assert "in each repeat" in table.note
    assert "Medians are of each model alone" in table.note
    assert "1.20 times as fast (paired ratio, 95% 1.10 to 1.30; reading, batch 1;" in SECTIONS["speed"].answer(record)


def test_the_best_speed_is_the_largest_of_the_table() -> None:
    """Writing is faster but less certain here: the sentence must not call the smaller number the best."""
    record = records.speed()
    rows = [
        {**row, "faster": 1.05, "low": 0.9, "high": 1.2} if row["what"] == "writing" and row["model"] != "shop/model-a"
        else {**row, "faster": 0.96, "low": 0.95, "high": 1.1}
        for row in encode(record.parts)["rows"]
    ]  # fmt: skip
    slow = records.changed(record, rows=rows)
    assert "at best 1.05 times as fast (paired ratio, 95% 0.90 to 1.20; writing" in SECTIONS["speed"].answer(slow)
    certain = [{**row, "faster": 1.02, "low": 1.01} if row["what"] == "reading" else row for row in rows]
    assert "at best 1.02 times" in SECTIONS["speed"].answer(records.changed(record, rows=certain)), "certain goes first"


def test_the_best_speed_of_several_settings_is_said_to_be_the_best_of_them() -> None:
    """Of 16 settings that are alike, the interval of the best leaves out 1 in 12% of cases."""
    assert "batch 1; as the best of 6, it is optimistic)" in SECTIONS["speed"].answer(records.speed())


def test_unrelated_heads_do_not_matter_on_other_data() -> None:
    """Of 8 unrelated heads, 32% have an r of .2 or more."""
    record = records.ablation()
    other = encode(record.parts.other)

    def answer(low: float, high: float) -> str:
        other["pearson"] = {"r": (low + high) / 2, "low": low, "high": high, "p": 0.1}
        return SECTIONS["transfer"].answer(records.changed(record, other=other))

    assert answer(-0.1, 0.9).startswith("It is open whether heads that matter on one data set matter on the other: ch")
    assert answer(-0.9, -0.1).startswith("Heads that matter on one data set tend to matter less on the other")


def test_how_often_heads_matter_on_both_data_sets_is_said_by_the_lower_end() -> None:
    """With noise, r of effects that are the same on both was .1 to .4: "hardly" was said in 38% of draws."""
    record = records.ablation()
    other = encode(record.parts.other)

    def answer(low: float, high: float) -> str:
        other["pearson"] = {"r": 0.9 * high, "low": low, "high": high, "p": 0.001}
        return SECTIONS["transfer"].answer(records.changed(record, other=other))

    assert answer(0.01, 0.2).startswith("Heads that matter on one data set tend to matter on the other")
    assert answer(0.3, 0.99).startswith("Heads that matter on one data set tend to matter on the other")
    assert answer(0.5, 0.99).startswith("Heads that matter on one data set mostly matter on the other")


def test_agreement_of_two_data_sets_is_shown_by_its_interval_alone() -> None:
    """Of 72 heads that are worth nothing, but vary by different amounts, half have a p of Pearson's r below .05."""
    random, left_out, small = np.random.default_rng(0), 0, 0
    for _ in range(20):
        row = pearson(*(random.normal(size=(2, 72)) * random.lognormal(sigma=1.2, size=72)))
        left_out, small = left_out + (not row.low <= 0 <= row.high), small + (row.p < 0.05)
    assert left_out <= 3
    assert small > 5, "or p could be shown"
    record = records.ablation()
    (table,) = SECTIONS["transfer"].tables([("", record)])
    assert "p" not in [column.name for column in table.columns]


def test_a_kind_costs_most_if_all_others_lead_it_for_certain() -> None:
    """Of kinds that are alike one always costs most."""
    record = made.curves(made.even(2, 4))
    assert "beyond 60%, removing encoder heads seems to cost most" in SECTIONS["kinds"].answer(record)

    def lead(first: str, low: float) -> dict[str, object]:
        return {"first": first, "second": "encoder", "start": 0.6, "end": 1.0, "value": 2.0, "low": low, "high": 3.0}

    for low, words in ((1.0, "costs most"), (-0.1, "seems to cost most")):
        leads = [lead("decoder", 1.0), lead("cross", low)]
        answer = SECTIONS["kinds"].answer(records.changed(record, leads=leads))
        assert f"removing encoder heads {words}" in answer


def test_heads_are_worth_something_for_certain_among_all_that_were_played() -> None:
    """Of 20 heads that are worth nothing, one or more have an effect beyond its own interval in 36% of cases."""
    record = made.roles(made.even(2, 8))
    head = encode(record.parts.played)["by_head"]["encoder.0.0"]
    assert "Of 1 head worth something for certain" in SECTIONS["played"].answer(record)

    def played(p: float, low: float) -> Record:
        one = {**head, "off": {**head["off"], "p": p}, "share_kept": {"value": 0.8, "low": low, "high": 0.9}}
        rows = {f"encoder.{layer}.{index}": one for layer in range(2) for index in range(8)}
        parts = {"metric": "loss", "value": 2.0, "by_head": rows}
        return records.changed(record, played=parts)

    def answer(p: float, low: float) -> str:
        return SECTIONS["played"].answer(played(p, low))

    def shares(p: float) -> set[object]:
        (table,) = SECTIONS["played"].tables([("a", played(p, 0.6))])
        return {row[5] for row in table.rows}

    assert shares(0.01) == {None}, "the table showed shares that the answer and the card did not"
    assert shares(0.001) == {80.0}
    assert "Of 16 heads replaced by a role none is worth anything for certain" in answer(0.01, 0.6)
    assert "at least half of that, by the whole interval, for 16" in answer(0.001, 0.6)
    assert "at least half of that, by the whole interval, for 0" in answer(0.001, 0.4)


def test_gains_of_several_models_are_named_beside_the_paper() -> None:
    record = records.speed()
    rows = encode(record.parts)["rows"]
    third = [{**row, "model": "shop/model-c", "faster": 0.9} for row in rows if row["model"] == "shop/model-b"]
    models = {**encode(record.parts)["models"], "shop/model-c": records.size(4)}
    both = SECTIONS["speed"].printed(records.changed(record, rows=[*rows, *third], models=models))
    assert both[0].ours == "model-b +20.0% at 32 tokens, model-c \u221210.0% at 32 tokens"
    assert SECTIONS["speed"].printed(record)[0].ours == "+20.0% at 32 tokens"


def test_heads_that_were_named_are_removed_by_name() -> None:
    assert "heads were removed by name (verified)" in SECTIONS["pruned"].answer(
        records.changed(pruned(2), method="given")
    )


def test_random_weights_are_not_called_the_pruned_model() -> None:
    quality = {"before": records.quality(30.0), "cut": records.quality(0.1), "after": records.quality(9.0)}
    record = records.changed(pruned(2), quality=quality, pipeline="rank-gradient/scratch", compensation=None)
    assert "new random weights 0.100" in SECTIONS["pruned"].answer(record)
    stage = {"trained": "all weights", "steps": 40, "seconds": 1.0, "epochs": [], "rate": 1e-3, "warmup": 2}
    gates = records.changed(record, pipeline="l0/scratch", training={"gates": stage, "tuning": stage})
    assert "heads removed 0.100" in SECTIONS["pruned"].answer(gates), "gates have trained the new weights"


def test_every_stage_of_pruning_is_named() -> None:
    """A score's last step is masked, before compensation; a search has no such step."""
    tuning = {"trained": "all weights", "steps": 40, "seconds": 1.0, "epochs": [], "rate": 1e-3, "warmup": 2}
    quality = {"before": records.quality(30.0), "cut": records.quality(29.0), "after": records.quality(29.5)}
    record = records.changed(pruned(2), quality=quality, training={"tuning": tuning})
    answer = SECTIONS["pruned"].answer(record)
    assert "BLEU: whole model 30.00, heads masked 28.00, after lstsq 29.00, after tuning 29.50" in answer
    table, curve, *_ = SECTIONS["pruned"].tables([("model-a", record)])
    stages = ["whole model", "heads masked", "after lstsq", "after tuning"]
    assert [column.name for column in table.columns][3:7] == stages
    assert table.rows[0][3:7] == [30.0, 28.0, 29.0, 29.5]
    assert curve.title == "Quality after each step, heads masked"
    searched = records.changed(record, quality={**quality, "cut": records.quality(28.0)})
    assert list(searched.parts.stages) == ["whole model", "after lstsq", "after tuning"]
    assert SECTIONS["pruned"].tables([("a", searched)])[1].title == "Quality after each step, after lstsq"
    start, *rest = (encode(point) for point in searched.parts.curve)
    unchanged = records.changed(searched, curve=[start, start, *rest])
    assert list(unchanged.parts.stages) == stages, "several steps are masked, also if compensation changes nothing"
    assert SECTIONS["pruned"].tables([("a", unchanged)])[1].title == "Quality after each step, heads masked"
    plain = made.pruned(made.even(2, 4))
    assert "BLEU: whole model 30.00, heads removed 28.00" in SECTIONS["pruned"].answer(plain)


def test_one_text_has_no_interval() -> None:
    """Nothing is called NaN, and a model that gets worse is not called as good as before."""
    nan = float("nan")
    quality = {**records.quality(30.0), "low": nan, "high": nan}
    text = printed(records.changed(made.evaluation(), examples=1, quality=quality))
    assert "(no interval) on 1 text" in text
    assert "nan" not in text
    steps = [Step(gone, gone / 4, value, nan, nan, {}, ()) for gone, value in enumerate((9.0, 9.0, 8.0, 7.0))]
    assert unharmed(steps, higher_is_better=True) == 0.25


def test_a_step_whose_share_has_no_upper_end_is_not_worse_for_certain() -> None:
    def step(removed: int, value: float, kept: Interval) -> Step:
        return Step(removed, removed / 4, value, value - 9, value + 9, {}, (), kept=kept)

    nan = float("nan")
    shares = [Interval(1, 1, 1), Interval(0.4, 0.1, nan), Interval(0.3, 0.2, 0.9)]
    steps = [step(number, value, kept) for number, (value, kept) in enumerate(zip((20, 50, 60), shares, strict=True))]
    assert unharmed(steps, higher_is_better=False) == 0.25
    one_text = [step(0, 20, Interval(1, nan, nan)), step(1, 50, Interval(0.4, nan, nan))]
    assert unharmed(one_text, higher_is_better=False) == 0


@pytest.mark.parametrize("whole", [0.1, -0.06])
def test_a_step_that_is_worse_by_its_change_is_worse_whatever_share_is_left(whole: float) -> None:
    """Shares of a Matthews correlation near 0 are unknown: by the band of the model, 58% of the heads could go."""
    unknown = Interval(float("nan"), float("nan"), 0.9 if whole > 0 else float("nan"))
    changes = [
        Interval(0, 0, 0),
        Interval(-0.01, -0.03, 0.02),
        Interval(-0.1, -0.15, -0.05),
        Interval(-0.2, -0.3, -0.1),
    ]
    steps = [
        Step(number, number / 4, whole + change.value, whole - 0.3, whole + 0.3, {}, (), kept=unknown, change=change)
        for number, change in enumerate(changes)
    ]
    assert unharmed(steps, higher_is_better=True) == 0.25
    assert limit(steps) == "gets measurably worse"
    assert limit([replace(step, change=None) for step in steps]) == "leaves the 95% interval of the whole model"
    assert unharmed_text(steps[:2], higher_is_better=True) == "at least 25%"


def test_a_relation_is_followed_if_any_head_has_the_role() -> None:
    """The best head on one half has the role for certain or not: "No head" was said of relations that others follow."""

    def answer(holds: Sequence[bool | None], best: bool | None) -> str:
        record = made.roles(made.ONE_LAYER)
        rows = [evidence("syntactic", "obj v->o", 0.6, holds=verdict) for verdict in holds]
        head = {"kind": "encoder", "head": "encoder.0.0", "held_out": True}
        return SECTIONS["syntax"].answer(
            records.changed(
                record,
                best=[{**evidence("syntactic", "obj v->o", 0.6, holds=best), **head}],
                evidence={f"encoder.0.{index}": [row] for index, row in enumerate(rows)},
            )
        )

    assert answer([False, True], False).startswith("On 1 of 1 relation a head beats the best fixed offset")
    assert answer([False, False], False).startswith("No head for certain beats the best fixed offset")
    assert answer([None, None], None) == "None of the 1 relations has enough instances for a verdict."


def test_the_heads_at_the_ends_of_a_ranking_are_apart_from_the_others() -> None:
    """Of 12 heads of which 11 had 0, five were named by their order in the model."""
    assert ends_of({"a": 1.0, **dict.fromkeys("bcdefghijkl", 0.0)}) == (["a"], [])
    assert ends_of({"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0, "e": 0.0}) == (["a"], ["d", "e"])
    assert ends_of({"a": 3.0, "b": 2.0, "c": 1.0}) == (["a"], ["c"])
    assert ends_of(dict.fromkeys("abcd", 0.5)) == ([], [])


def test_a_mean_of_curves_that_never_get_worse_is_a_lower_bound() -> None:
    """ "at least 40% by gradient and 40% in random order", though neither got worse."""
    record = made.curves(made.even(2, 4))
    change = {"value": 0, "low": -1, "high": 1}
    line = encode(record.parts)["curves"][0]
    points = [
        {**point, "share": 0.1 * number, "change": change, "kept": None}
        for number, point in enumerate(line["points"][:3])
    ]
    lines = [{**line, "order": order, "points": points} for order in ("gradient", "random", "random")]
    answer = SECTIONS["curves"].answer(records.changed(record, curves=lines))
    assert "at least 20% by gradient and at least 20% in random order can go" in answer


def test_no_kind_costs_most_beyond_what_was_measured() -> None:
    """With half of the heads gone at most, the first kind was said to cost most beyond 60%."""
    record = made.curves(made.even(2, 4))
    by_kind = [{**line, "points": line["points"][:3]} for line in encode(record.parts)["by_kind"]]
    assert all(line["points"][-1]["share"] <= 0.6 for line in by_kind)
    short = records.changed(record, by_kind=by_kind)
    assert "beyond" not in SECTIONS["kinds"].answer(short)
    assert SECTIONS["kinds"].printed(short)[0].ours is None
    assert "beyond 60%" in SECTIONS["kinds"].answer(record)


@pytest.mark.parametrize("section", ["curves", "kinds"])
def test_heads_that_can_go_are_counted_by_paired_changes(section: str) -> None:
    """The first screen said 10%, this section 20% by the band of the whole model, at which BLEU was certainly worse."""
    parts = encode(made.curves(made.even(2, 4)).parts)
    lines = parts["curves" if section == "curves" else "by_kind"]
    for line in lines:
        for number, point in enumerate(line["points"]):
            high = 0.995 if number > 1 else 1.01
            kept = {"value": 0.99, "low": 0.985, "high": high}
            point |= {"value": 30.0 - number / 10, "low": 28.0, "high": 32.0, "kept": kept}
    record = records.changed(made.curves(made.even(2, 4)), **parts)
    shares = {100 * line["points"][1]["share"] for line in lines}
    text = SECTIONS[section].answer(record)
    assert "gets measurably worse" in text
    assert {float(share) for share in re.findall(r"(\d+)% (?:by|in|of)", text)} <= {round(share) for share in shares}


def test_the_share_to_try_is_the_largest_that_harms_nothing_or_the_smallest_step() -> None:
    def tried(*values: float) -> float:
        points = [
            {"removed": number, "share": number / 4, "value": value, "low": value - 1, "high": value + 1,
             "kept_by_kind": {}, "heads": []}
            for number, value in enumerate(values)
        ]  # fmt: skip
        curve = {"order": "gradient", "kinds": ["encoder"], "seed": None, "points": points}
        return share_to_try(records.changed(made.curves(made.ONE_LAYER), curves=[curve]).parts, "gradient")

    assert tried(30, 29.5, 29.5, 20, 10) == 0.5
    assert tried(30, 20, 29.5, 20, 10) == 0.25  # the first step harms
    assert tried(30, 30, 30, 30, 30) == 0.75  # not all heads
    assert np.isnan(tried(30))


def test_one_epoch_is_one_epoch() -> None:
    epochs = encode(made.training().parts.epochs[:1])
    record = records.changed(made.training(), epochs=epochs, steps=1)
    assert "After 1 epoch (1 step, " in SECTIONS["training"].answer(record)


def test_what_several_runs_vary_with_is_shown() -> None:
    """Seeds make two thirds of the variance of a difference; of a lead, random orders take the place of seeds."""
    tables = SECTIONS["tradeoff"].tables([("m", compared(4))])
    (ways,) = (table for table in tables if table.title == "Ways compared on the same examples")
    assert ways.columns[-1].name == "variance"
    assert {row[-1] for row in ways.rows} == {"seeds 67%, examples 33%"}
    lead = {
        "first": "gradient", "second": "random", "start": 0.2, "end": 0.6, "value": 1.0, "low": 0.5, "high": 1.5,
        "variance": {"models": 0.0, "seeds": 0.3, "examples": 0.1},
    }  # fmt: skip
    curves = records.changed(
        made.curves(made.even(2, 4)), leads=[lead, {**lead, "second": "ablation", "variance": None}]
    )
    table = SECTIONS["curves"].tables([("m", curves)])[-1]
    assert [row[-1] for row in table.rows] == ["orders 75%, examples 25%", None]
    assert "(1 model, 1 random order)" in SECTIONS["curves"].answer(curves)
    assert ways.note.endswith("Variance: of the mean over runs, by what it varies with.")


def test_of_one_run_it_is_unknown_what_runs_vary_with() -> None:
    """With one random order the column said `examples 100%`, as if orders were all alike."""
    alone = {"models": 0.0, "seeds": 0.0, "examples": 0.1}
    assert parts_of_variance(alone, seeds="orders") is None
    assert parts_of_variance({**alone, "seeds": 0.1}, seeds="orders") == "orders 50%, examples 50%"


def test_the_best_of_several_says_so() -> None:
    """Of eight scores that agree alike, the interval of the highest leaves out the truth in 12 to 16% of cases."""
    record = made.agreement(made.even(1, 8))
    (section,) = [section for section in SECTIONS.values() if section.fits(record)]
    assert "best of" not in section.answer(record)
    row = record.parts.spearman["gradient"]
    several = replace(record, parts=replace(record.parts, spearman={"gradient": row, "fisher": row}))
    assert "as the best of 2, it is optimistic" in section.answer(several)


def test_a_speed_without_an_interval_says_so() -> None:
    parts = encode(records.speed().parts)
    rows = [{**row, "low": None, "high": None} for row in parts["rows"]]
    answer = SECTIONS["speed"].answer(records.changed(records.speed(), rows=rows))
    assert "at best 1.20 times as fast (paired ratio, no 95% interval; reading" in answer


def test_a_correlation_has_one_kind_of_minus() -> None:
    transfer = {**encode(records.ablation().parts.other), "pearson": {"r": -0.01, "low": -0.48, "high": 0.55, "p": 0.9}}
    record = records.changed(records.ablation(), other=transfer)
    assert "r = \u22120.01 (95% \u22120.48 to 0.55)" in SECTIONS["transfer"].answer(record)
    assert SECTIONS["transfer"].printed(record)[0].ours == "\u22120.01"


def test_a_small_excess_loss_is_not_rounded_away() -> None:
    lines = encode(records.compensation().parts.compensations)
    small = {way: [{**point, "value": point["value"] / 500} for point in points] for way, points in lines.items()}
    answer = SECTIONS["compensation"].answer(records.changed(records.compensation(), compensations=small, at=None))
    assert answer == "With the most heads removed, an example's excess loss is 0.004 with none, 0.001 with lstsq."


def test_an_accuracy_of_epochs_is_not_rounded_to_one_digit() -> None:
    epochs = [
        {**epoch, "value": 0.84 + 0.01 * at} for at, epoch in enumerate(encode(records.dynamics().parts.by_epoch))
    ]
    record = records.changed(records.dynamics(), metric="accuracy", by_epoch=epochs)
    assert SECTIONS["dynamics"].printed(record)[0].ours == "1: 0.84, 2: 0.85, 5: 0.86 accuracy"
    legend = draw("dynamics", [record]).canvas.axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["1 (0.84)", "2 (0.85)", "5 (0.86)"]


@pytest.mark.parametrize(("low", "said"), [(0.5, "lstsq leaves 7% (95% \u2212545% to 459%)"), (-0.1, "excess loss is")])
def test_a_share_of_an_excess_loss_needs_one(low: float, said: str) -> None:
    """A loss without compensation of .007 (-.011 to .023) made greedy leave -1122% of that of lstsq."""
    parts = encode(records.compensation().parts)
    parts["compensations"]["none"][1]["low"] = low
    parts["at"]["ratios"] = {"lstsq/none": {"value": 0.07, "low": -5.45, "high": 4.59}}
    record = records.changed(records.compensation(), **parts)
    assert said in SECTIONS["compensation"].answer(record)
    (quality,) = [table for table in SECTIONS["compensation"].tables([("m", record)]) if "first lost" in table.title]
    assert quality.rows[1][4:] == (["lstsq/none", 0.07, "\u22125.45 to 4.59"] if low > 0 else [None, None, None])


def test_an_answer_about_one_of_several_models_names_it() -> None:
    console = Console(file=io.StringIO(), width=200)
    some = [made.ablation(made.ONE_LAYER, "shop/model-a"), made.pruned(made.ONE_LAYER, "shop/model-b")]
    show(console, some, tables=False, missing=False)
    for said in (console.file.getvalue(), page(some)):
        assert "model-a: BLEU is 30.00 with all heads" in said
        assert re.search(r"does the smaller model lose\?(</a>)?\s+model-b: \d+ of", said)
