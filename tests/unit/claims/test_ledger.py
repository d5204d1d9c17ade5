"""The ledger: every claim once, with its verdict, on the page, in the terminal and in the documentation."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import click
import pytest

from claimed import ablation, model
from headcount.claims.claim import Measurement, above, claims, difference, ordered, pooled
from headcount.claims.ledger import ledger
from headcount.claims.measured import measured
from headcount.claims.page import page
from headcount.claims.pool import LEDGER, pool
from headcount.claims.shares import share_interval
from headcount.claims.studied import last_of_each_training
from headcount.cli.main import main
from headcount.errors import UsageError
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.training import training_of
from headcount.report.section import sections
from headcount.statistics import Interval
from headcount.studies.whole import PAPERS, with_ledger

PAGE = Path(__file__).parents[3] / "docs" / "claims.md"
MEASURED = PAGE.parent / "results" / "claims.json"
NAN = float("nan")


def combined(name: str, model: str = "/a/b/m", **missing: str) -> Record[Combined]:
    return Record("combined", Signature(model), Combined(name, {"ablation": ablation(4)}, missing, {}))


def test_numbers_are_in_order_and_complete() -> None:
    numbers = [claim.number for claim in ordered()]
    assert numbers == [*(f"V{number}" for number in range(1, 14)), *(f"M{number}" for number in range(1, 10))]
    assert len(claims) == len(numbers)
    assert all(claim.part in PAPERS[claim.paper] for claim in ordered())


@pytest.mark.parametrize("name", claims)
def test_commands_exist_with_their_options(name: str) -> None:
    words = claims[name].command.split()[1:]
    command: Any = main
    while hasattr(command, "get_command"):
        command = command.get_command(click.Context(main), words.pop(0))
        assert command is not None
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options
    parts = words[words.index("--parts") + 1].split(",")
    assert set(parts) <= set(PAPERS["all"]), "records of single commands decide no claim"


def test_the_page_is_written_from_the_claims_and_what_was_measured() -> None:
    """Write it with: python -m headcount.claims.page docs/results/claims.json > docs/claims.md"""
    assert PAGE.read_text(encoding="utf-8") == page(Record.load(MEASURED) if MEASURED.is_file() else None)


def test_what_was_measured_is_on_the_page_without_paths() -> None:
    figures = measured(
        [pool([combined("all", dynamics="/a/b/m has no epochs"), combined("all", model="/a/b/n")])], "x; V12: y"
    )
    again = Record.from_json(figures.to_json())
    assert "/a/b" not in again.to_json()
    text = page(again)
    assert re.search(r"Measured on 2 models, [\d-]+: m, n\.\n\n- `x`\n- V12: y\n", text)
    (line,) = [line for line in text.splitlines() if line.startswith("| M1.")]
    assert ", 2 models | **holds**: 88 of 96 heads" in line
    assert "m has no epochs" in text
    assert text.count("**open**") == 20
    with pytest.raises(UsageError, match="whole study"):
        measured([ablation(4)], "x")


def test_claims_that_are_not_measured_keep_their_earlier_number_and_are_open() -> None:
    new = measured([combined("all")], "x")
    rows = [replace(row, value=1.5, models=3, holds=True, detail="why") for row in new.parts.verdicts]
    earlier = replace(new, parts=replace(new.parts, verdicts=tuple(rows)))
    again = {row.number: row for row in measured([combined("all")], "x", earlier).parts.verdicts}
    by_number = {row.number: row for row in new.parts.verdicts}
    assert again["M1"] == by_number["M1"]
    assert by_number["V12"].models == 0
    assert (again["V12"].value, again["V12"].models, again["V12"].holds) == (1.5, 3, None)
    assert again["V12"].detail.endswith("not measured again; why")
    command = measured([combined("all")], "y", earlier).signature.arguments["command"]
    assert command.startswith("y; V1, ")
    assert command.endswith(": x")


@pytest.mark.parametrize(("name", "count"), [("all", 22), ("voita2019", 13), ("michel2019", 9)])
def test_a_whole_study_decides_the_claims_of_its_papers(name: str, count: int) -> None:
    record = with_ledger(combined(name))
    assert len(record.parts.records[LEDGER].parts.verdicts) == count
    again = Record.from_json(record.to_json())
    assert again.to_json() == record.to_json()


def test_a_part_that_could_not_be_measured_gives_the_reason() -> None:
    record = with_ledger(combined("michel2019", dynamics="has checkpoints named by epoch"))
    verdicts = {row.number: row for row in record.parts.records[LEDGER].parts.verdicts}
    assert verdicts["M8"].detail.startswith("has checkpoints named by epoch; headcount study all MODEL")


def test_the_answer_counts_verdicts() -> None:
    record = Record(LEDGER, Signature("m"), ledger([model(ablation(2, r=-0.8))]))
    answer = sections["ledger"].answer(record)
    counts = "22 claims of the papers: here 2 hold, 1 does not, 19 are open (19 for want of a record)."
    assert answer.startswith(f"1 model (m): {counts}")


def test_verdicts_respect_their_interval() -> None:
    assert above(Interval(1, 0.5, 2), 0) is True
    assert above(Interval(-1, -2, -0.5), 0) is False
    assert above(Interval(1, -0.5, 2), 0) is None
    assert above(Interval(1, NAN, NAN), 0) is None


def test_pooling_has_models_and_examples_in_it() -> None:
    assert pooled([Interval(1, 0, 2)]) == (1, 0, 2)
    alike = pooled([Interval(1.0, 0.0, 2.0)] * 3)
    assert alike.low < 1 - 1 / 3**0.5  # t with two degrees of freedom is wider than the normal
    apart = pooled([Interval(value, value, value) for value in (0.0, 1.0, 2.0)])
    assert apart.low == pytest.approx(1 - 4.3027 / 3**0.5, abs=1e-3)


def test_intervals_by_hand() -> None:
    assert difference(Interval(5, 4, 6), Interval(3, 3, 3)) == pytest.approx((2, 1, 3))
    assert difference(Interval(5, 2, 6), Interval(3, 2, 7)) == pytest.approx((2, -3, 2 + 2**0.5))
    assert share_interval(0, 10).high == pytest.approx(0.3085, abs=1e-4)


def test_epochs_of_one_training_are_no_further_models() -> None:
    """As five models, five epochs decided 10 to 17% of true nulls of V2, and 12 to 43% of M1."""
    names = ["run/epochs/001", "run/epochs/010", "run/epochs/002", "other/checkpoint-20", "other", "third"]
    studied = [replace(model(ablation(count)), name=name) for count, name in enumerate(names, start=2)]
    assert [one.name for one in last_of_each_training(studied)] == ["run/epochs/010", "other", "third"]
    decided = ledger(studied)
    assert decided.models == ("run/epochs/010", "other", "third")
    verdict = next(verdict for verdict in decided.verdicts if verdict.number == "M1")
    assert verdict.models == 3
    assert verdict.detail.endswith("of several epochs of a training the last counts")
    assert "epochs" not in next(row for row in ledger(studied[4:]).verdicts if row.number == "M1").detail


@pytest.mark.parametrize(
    ("name", "run"),
    [("a/epochs/003", ("a", 3)), ("a/epochs/0.25/", ("a", 0.25)), ("a/checkpoint-500", ("a", 500)),
     ("a/seed-3", ("a/seed-3", inf)), ("epochs", ("epochs", inf))],
)  # fmt: skip
def test_the_training_of_a_model_is_in_its_name(name: str, run: tuple[str, float]) -> None:
    assert training_of(name) == run


def test_a_number_that_is_0_but_for_rounding_is_0() -> None:
    """A difference of two means was -1e-17."""
    claim = replace(claims["most_heads_can_go"], measure=lambda _: Measurement(Interval(-1e-17, -0.2, 1e-18), None))
    assert str(claim.measured([]).interval) == str(Interval(0.0, 0.0, 0.0))
    assert replace(claim, bounds=(-1.0, 1.0)).measured([]).interval == (0.0, -0.2, 0.0)


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_rounding_decides_no_claim(threshold: float) -> None:
    """Gates that keep whole layers keep as many heads with a role as chance: the sign of 5.55e-17 was the verdict."""
    assert above(Interval(threshold, threshold + 5.55e-17, threshold + 6e-17), threshold) is None
    assert above(Interval(threshold, threshold - 6e-17, threshold - 5.55e-17), threshold) is None
    assert above(Interval(threshold, threshold + 1e-6, threshold + 1e-5), threshold) is True
