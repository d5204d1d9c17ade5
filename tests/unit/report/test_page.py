"""The page and the terminal say what records say, whatever of them there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import records
import subjects as made
from headcount.cli.main import main
from headcount.record import Record, Signature
from headcount.record.codec import encode
from headcount.record.result import Result
from headcount.report.exhibits import exhibits
from headcount.report.figure import figures
from headcount.report.html import _table, page
from headcount.report.overview import overview
from headcount.report.papers import shown
from headcount.report.payload import payload
from headcount.report.section import beside, labelled_for, ordered, sections
from headcount.report.subject import flat, subjects
from headcount.report.table import Column, Table

SITES = made.even(2, 3)
EVERYTHING = [*made.everything(SITES), records.dynamics(), records.attention(5)]


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


class Outline(HTMLParser):
    """Which elements stand in a page, and whether they are closed in order."""

    EMPTY = {"meta", "link", "input", "br"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.EMPTY:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def whole() -> str:
    return page(EVERYTHING)


def test_every_section_has_a_record_here() -> None:
    """So that the tests below are about all of them."""
    found = subjects([*EVERYTHING, records.ablation("shop/model-c")])
    assert [name for name, section in ordered() if not labelled_for(section, found)] == []


def test_every_question_is_answered_in_one_sentence_with_its_tables(whole: str) -> None:
    for name, section in ordered():
        for record in [*EVERYTHING, records.ablation()]:
            if section.fits(record):
                answer = section.answer(record)
                assert answer.endswith("."), answer
                assert "nan" not in answer
                assert section.tables([("a", record)]), name
                one, two = section.tables([("a", record)])[0], section.tables([("a", record), ("b", record)])[0]
                for table in (one, two):
                    assert table.rows, name
                    assert {len(row) for row in table.rows} == {len(table.columns)}, name
        if name != "transfer":
            assert f'<section id="{name}"' in whole


def test_figures_of_sections_exist_and_belong_to_one() -> None:
    claimed = [name for _, section in sections.items() for name in section.figures]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) <= set(figures)


@pytest.mark.parametrize("name", sections)
def test_commands_for_what_is_missing_exist_with_their_options(name: str) -> None:
    words = sections[name].command.split()[1:]
    command: Any = main
    while hasattr(command, "get_command"):
        command = command.get_command(click.Context(main), words.pop(0))
        assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_every_link_leads_somewhere(whole: str) -> None:
    ids = set(re.findall(r' id="([^"]*)"', whole))
    cards = set(made.names(SITES))  # the script opens the card of a head
    assert {name for name in re.findall(r'<a [^>]*href="#([^"]*)"', whole) if name not in ids | cards} == set()


def test_the_page_is_whole_and_needs_nothing_else(whole: str) -> None:
    outline = Outline()
    outline.feed(whole)
    assert outline.wrong == []
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    frame = re.sub(r"<script.*?</script>", "", whole, flags=re.DOTALL)
    frame = re.sub(r'xmlns(:xlink)?="[^"]*"', "", frame)
    assert "http" not in frame.replace("http-equiv", "")
    assert 'src="' not in frame


def test_numbers_beside_the_paper_are_ours() -> None:
    record = made.ablation(SITES)
    table = beside(sections["ablation"], [("a", record)])
    assert table is not None
    assert table.rows[0] == ["the whole model", "BLEU 36.05 (WMT14 English-French)", "BLEU 30.00"]
    low = [head for head, effect in record.parts.one_out.items() if head.startswith("encoder") and effect.p < 0.01]
    assert table.rows[1][2].startswith(f"{len(low)} of 6")


def test_the_answer_counts_what_the_record_holds() -> None:
    record = made.ablation(SITES)
    effects = record.parts.one_out
    sure = [effect for effect in effects.values() if effect.corrected < 0.01]
    better = sum(effect.difference > 0 for effect in sure)
    worst = min(effects, key=lambda head: effects[head].difference)
    answer = sections["ablation"].answer(record)
    assert f"BLEU is 30.00 with all heads. Of 18 heads {len(sure)} change it" in answer
    assert f"{better} of them for the better" in answer
    assert worst in answer


def test_too_few_examples_to_find_anything_are_said() -> None:
    """18 heads at .01: twelve examples can be enough, eleven cannot."""
    record = made.ablation(SITES)
    said = "11 examples cannot make any change significant, however large: measure at least 12"
    for examples in (11, 12):
        effects = encode(record.parts)["one_out"]
        measured = {head: {**effect, "examples": examples} for head, effect in effects.items()}
        for name in ("ablation", "alone"):
            answer = sections[name].answer(records.changed(record, one_out=measured))
            assert (said in answer) == (examples == 11)


def test_how_many_heads_can_go_is_where_the_curve_leaves_the_interval_of_the_whole() -> None:
    values = [30.0, 29.5, 29.2, 25.0, 29.9]
    points = [
        {
            "removed": n,
            "share": n / 10,
            "value": value,
            "low": value - 1,
            "high": value + 1,
            "kept_by_kind": {},
            "heads": ["encoder.0.0"],
        }
        for n, value in enumerate(values)
    ]
    line = {"order": "gradient", "kinds": ["encoder"], "seed": None, "points": points}
    assert "20% by gradient" in sections["curves"].answer(records.changed(records.curves(), curves=[line]))
    worse = [{**point, "value": -point["value"], "low": -point["high"], "high": -point["low"]} for point in points]
    loss = {"metric": "loss", "higher_is_better": False, "value": -30.0, "curves": [{**line, "points": worse}]}
    assert "20% by gradient" in sections["curves"].answer(records.changed(records.curves(), **loss))


@pytest.mark.parametrize("held_out", [True, False])
def test_quality_on_texts_that_heads_were_chosen_on_is_said_to_flatter(held_out: bool) -> None:
    measured = {**records.MEASURED_ON, "held_out": held_out, "overlap": 0 if held_out else 20}
    answer = sections["pruned"].answer(records.changed(made.pruned(SITES), measured_on=measured))
    assert ("which is optimistic" in answer) is (not held_out)


@pytest.mark.parametrize(
    ("overlap", "said"),
    [
        (1, "; heads were chosen on 1 of the 40 texts that it was measured on"),
        (20, ", which is optimistic: heads were chosen on 20 of the 40 texts that it was measured on"),
        (40, ", which is optimistic: it was measured on the texts that heads were chosen on"),
    ],
)
def test_texts_that_heads_were_chosen_on_are_counted(overlap: int, said: str) -> None:
    measured = {**records.MEASURED_ON, "held_out": False, "examples": 40, "overlap": overlap}
    assert said in sections["pruned"].answer(records.changed(made.pruned(SITES), measured_on=measured))


def test_spellings_of_one_folder_are_one_model() -> None:
    (found,) = subjects([made.ablation(SITES, "tr-0/"), made.score(SITES, model="tr-0"), made.roles(SITES, "./tr-0")])
    assert len(found.of("ablate", "score", "roles")) == 3


def test_pruned_models_of_one_method_are_told_apart() -> None:
    one = made.pruned(SITES)
    less = records.changed(one, heads=list(one.parts.heads)[1:])
    some = [one, replace(less, signature=replace(less.signature, arguments={"keep": "less"}))]
    labels = [label for label, _ in labelled_for(sections["pruned"], subjects(some))]
    assert labels == [f"{one.parts.method}, {len(each.parts.heads)} heads left" for each in some]
    (payed,) = payload(subjects(some))["subjects"]
    lines = [line["label"] for line in payed["curves"] if line["label"].startswith("pruned by")]
    assert len(set(lines)) == len(lines)


def test_a_trade_off_of_one_kind_names_what_was_pruned() -> None:
    some = records.changed(records.tradeoff(), pruned="encoder heads")
    assert " encoder heads left, " in sections["tradeoff"].answer(some)


@pytest.mark.parametrize("off_p", [0.001, 0.01])
def test_the_card_has_shares_of_the_heads_that_the_answer_counts(off_p: float) -> None:
    """A p-value of .01 is none for certain among 16 heads: the card said what the role gives of what it is worth."""
    record = made.roles(made.even(2, 8))
    head = encode(record.parts.played)["by_head"]["encoder.0.0"]
    one = {**head, "off": {**head["off"], "p": off_p}}
    rows = {f"encoder.{layer}.{index}": one for layer in range(2) for index in range(8)}
    record = records.changed(record, played={"metric": "loss", "value": 2.0, "by_head": rows})
    (subject,) = payload(subjects([record]))["subjects"]
    shares = [head["share_kept"] for head in subject["played"]["heads"] if head]
    assert len(shares) == 16
    assert all(shares) == any(shares) == (off_p < 0.05 / 16)


def test_the_payload_holds_every_head_once_with_its_numbers(whole: str) -> None:
    (subject,) = data_of(whole)["subjects"]
    assert subject["heads"] == made.names(SITES)
    effects = EVERYTHING[0].parts.one_out
    change = next(measure for measure in subject["measures"] if measure["label"] == "change of BLEU without it")
    assert change["harm"] == -1
    assert change["values"] == [pytest.approx(effects[head].difference, rel=1e-4) for head in subject["heads"]]
    first = subject["curves"][0]["points"]
    assert first[0]["mask"] == "1" * 18
    assert first[-1]["mask"] == "0" * 18
    kept = set(EVERYTHING[2].parts.curves[0].points[2].heads)
    assert first[2]["mask"] == "".join("1" if head in kept else "0" for head in subject["heads"])


def test_every_exhibit_of_the_papers_is_listed_with_its_place_or_the_reason(whole: str) -> None:
    found = subjects([made.combined(EVERYTHING)])
    found[0].missing["ablation"] = "no second data set"
    lines = {(line.exhibit.paper, line.exhibit.name): line for line in shown(found, ordered(), dict(figures.items()))}
    assert len(lines) == len(exhibits())
    assert lines["michel2019", "Figure 3"].section == "curves"
    assert lines["michel2019", "Tables 2 and 3"].section == "alone"
    assert lines["voita2019", "Table 1"].section == "syntax"
    assert lines["voita2019", "Figure 4"].section is None
    assert "two models" in lines["voita2019", "Figure 4"].reason
    assert lines["michel2019", "Figure 2"].section is None
    assert lines["michel2019", "Figure 2"].reason == "no second data set"
    for line in lines.values():
        assert line.section is None or f'id="{line.section}"' in whole, line


def listed(found: list[Any]) -> dict[tuple[str, str], Any]:
    return {(line.exhibit.paper, line.exhibit.name): line for line in shown(found, ordered(), dict(figures.items()))}


def test_every_exhibit_is_there_where_its_record_is() -> None:
    """With all that one model can have, all but those that compare models; with two models these too."""
    everything = [*EVERYTHING, records.ablation("shop/model-a")]
    lines = listed(subjects([made.combined(everything)]))
    assert len(lines) == 20
    assert {key for key, line in lines.items() if line.section is None} == {
        ("voita2019", "Figure 2"), ("voita2019", "Figure 4"),
    }  # fmt: skip
    text = page([made.combined(everything)])
    for line in lines.values():
        if line.section:
            assert f'id="{line.section}"' in text, line
            section = re.search(rf'<section id="{line.section}".*?</section>', text, re.DOTALL)
            assert section
            assert line.exhibit.figure is None or f'data-name="{line.exhibit.figure}"' in section[0], line
    both = listed(subjects([made.combined(everything), made.combined([made.roles(SITES, "shop/b")], "shop/b")]))
    assert [key for key, line in both.items() if line.section is None] == []


def test_every_exhibit_that_is_not_there_says_why() -> None:
    """No record at all; a study that could not give a part; a record that lacks what the figure needs."""
    nothing = listed(subjects([made.training()]))
    assert all(line.section is None for line in nothing.values())
    for key, line in nothing.items():
        several = key in (("voita2019", "Figure 2"), ("voita2019", "Figure 4"))
        assert several or line.reason.startswith(f"not measured; headcount study {key[0]} MODEL"), line
        known = click.Context(main).command.get_command(click.Context(main), "study")  # type: ignore[attr-defined]
        assert known.get_command(click.Context(main), key[0]) is not None

    missing = {exhibit.part: f"no {exhibit.part} here" for exhibit in exhibits()}
    begun = made.combined([made.ablation(SITES)], missing=missing)
    for line in listed(subjects([begun])).values():
        assert line.section or line.reason == f"no {line.exhibit.part} here"

    bare = made.tradeoff(SITES, pruned="encoder heads")
    points = [{**point, "roles": None} for point in encode(bare.parts.points)]
    absent = dict.fromkeys(("whole_roles", "looked", "drift", "hard_concrete"))
    lacking = {"whole_roles": "there were no sentences to look at"}
    bare = records.changed(bare, points=points, lacking=lacking, **absent)
    plain = records.changed(made.roles(SITES), best=[], relative={})
    alone = records.changed(made.curves(SITES), by_kind=None)
    one = records.changed(made.ablation(SITES), all_but_one=None)
    lines = listed(subjects([made.combined([bare, plain, alone, one])]))
    reasons = {
        ("voita2019", "Figure 3"): "the sentences had no trees",
        ("voita2019", "Table 1"): "the sentences had no trees",
        ("voita2019", "Figure 6"): "no Hard Concrete gates were learned (l0)",
        ("voita2019", "Figure 8"): "there were no sentences to look at",
        ("voita2019", "Table 2"): "heads of one kind alone were pruned",
        ("voita2019", "Figure 9"): "heads of one kind alone were pruned",
        ("voita2019", "Figure 10"): "heads of one kind alone were pruned",
        ("michel2019", "Tables 2 and 3"): "heads were not left alone (--no-alone)",
        ("michel2019", "Figure 2"): "no second data set was given",
        ("michel2019", "Figure 4"): "the model has only one kind of attention",
    }
    assert {key: lines[key].reason for key in reasons} == reasons
    assert all(lines[key].section is None for key in reasons)
    assert lines["voita2019", "Figure 7"].section == "tradeoff"
    text = page([made.combined([bare, plain, alone, one])])
    assert "there were no sentences to look at" in text
    assert "heads of one kind alone were pruned" in text


def test_hostile_text_stays_text() -> None:
    evil = '</script><script>alert(1)</script><img src=x onerror=alert(2)>"&\u2028'
    hostile = [
        made.ablation(SITES, evil), made.examples(SITES, [evil, "<!--", "]]>"], evil), made.curves(SITES, evil),
    ]  # fmt: skip
    text = page(hostile, title=evil)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("</script>") == 3
    assert data_of(text)["subjects"][0]["examples"][0]["tokens"]["source"][0] == evil


@pytest.mark.parametrize("one", EVERYTHING, ids=lambda record: record.study)
def test_every_record_alone_makes_a_page_that_says_what_is_missing(one: Record) -> None:
    text = page([one])
    assert "What was not measured?" in text
    for _, section in ordered():
        if not section.fits(one):
            assert section.question in text


@pytest.mark.parametrize("sites", [made.RAGGED, made.ONE_LAYER], ids=["ragged", "one layer"])
def test_any_shape_of_model(sites: made.Sites) -> None:
    (subject,) = data_of(page(made.everything(sites)))["subjects"]
    assert sorted(subject["heads"]) == sorted(made.names(sites))


def test_combined_records_are_flattened_and_stay_together() -> None:
    one = made.combined([made.ablation(SITES), made.combined([made.score(SITES, model="another/name")])])
    assert [record.study for record in flat(one)] == ["ablate", "score"]
    (subject,) = subjects([one])
    assert [record.study for record in subject.records] == ["ablate", "score"]
    together = subjects(
        [made.roles(SITES), one, made.ablation(SITES)]
    )  # what is of the same model joins, twice is twice
    assert [[record.study for record in some.records] for some in together] == [
        ["ablate", "score", "roles", "role and importance"],  # made of both sides
        ["ablate"],
    ]
    halves = [made.combined([made.roles(SITES)]), made.combined([made.curves(SITES)])]  # of both papers
    assert [len(some.records) for some in subjects(halves)] == [2]
    assert [len(some.records) for some in subjects([*halves, halves[0]])] == [2, 1]
    begun = made.combined([], missing={"speed": "no <time>"})
    text = page([begun])
    assert "What was not measured?" in text
    assert "no &lt;time&gt;" in text


def test_two_records_of_a_study_are_two_subjects_with_names_that_differ() -> None:
    first, second = made.ablation(SITES), made.ablation(SITES, seed=5)
    second = replace(second, signature=Signature("shop/model-a", "a1b2c3", "other data"))
    third = made.ablation(SITES, "elsewhere/model-a")
    found = subjects([first, made.score(SITES), second, third, made.score(SITES, "fisher")])
    assert [len(subject.records) for subject in found] == [3, 1, 1]
    labels = [subject.label for subject in found]
    assert len(set(labels)) == 3
    assert "other " in labels[1]
    assert labels[2] == "elsewhere/model-a"
    assert len(payload(found)["subjects"]) == 3


def test_a_trade_off_alone_counts_the_heads_that_no_point_keeps() -> None:
    """Its points name the remaining heads only: shares are of all heads of the whole model."""
    record = records.tradeoff()
    few = tuple(replace(point, heads=("encoder.0.1", "encoder.2.0")) for point in record.parts.points[:1])
    older = replace(record, parts=replace(record.parts, points=few))
    named = replace(older, parts=replace(older.parts, whole_heads=("encoder.0.1", "encoder.2.0", "encoder.2.7")))
    for found, of in ((older, 32), (replace(named, parts=replace(named.parts, heads_by_site={"encoder.0": 3})), 3)):
        (subject,) = payload(subjects([found]))["subjects"]
        assert len(subject["heads"]) == of
        (line,) = subject["curves"]
        assert [point["mask"].count("1") for point in line["points"]] == [of, 2]
        assert line["points"][1]["removed"] == of - 2
        assert line["points"][1]["share"] == pytest.approx((of - 2) / of, rel=1e-4)
    sites = {"encoder.0": 1, "encoder.2": 3}
    pruned = replace(older, parts=replace(older.parts, heads_by_site=sites, whole_roles=None))
    assert payload(subjects([pruned]))["subjects"][0]["curves"] == []


def test_steps_of_pruning_are_named_by_what_had_been_done_to_the_model() -> None:
    """With compensation the smaller model has another quality than the model with its heads masked."""
    fitted = {"method": "lstsq", "data": "", "rows": 9, "sites": {}, "quality": records.quality(29.0)}
    quality = {"before": records.quality(30.0), "cut": records.quality(29.0), "after": records.quality(29.0)}
    ranked = records.changed(made.pruned(SITES), quality=quality, compensation=fitted)
    searched = records.changed(ranked, quality={**quality, "cut": records.quality(28.0)})
    labels = [payload(subjects([record]))["subjects"][0]["curves"][0]["label"] for record in (ranked, searched)]
    assert labels == ["pruned by gradient, heads masked", "pruned by gradient, after lstsq"]


@pytest.mark.parametrize(("value", "shown"), [(21.3498673, "21.3"), (123456.4, "123456")])
def test_the_page_rounds_numbers_once(value: float, shown: str) -> None:
    """Not to 21.35 first, and then to 21.4."""
    step = encode(made.pruned(SITES).parts.curve[-1])
    record = records.changed(made.pruned(SITES), curve=[step, {**step, "value": value}])
    (line,) = payload(subjects([record]))["subjects"][0]["curves"]
    digits = len(shown.partition(".")[2])
    assert f"{line['points'][-1]['value']:.{digits}f}" == shown


def test_a_record_out_of_shape_leaves_the_rest_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = made.curves(SITES)
    lines = broken.parts.curves
    # random orders of different lengths cannot be averaged with others
    lines = (*lines[:2], replace(lines[2], points=lines[2].points[:-1]), replace(lines[2], points=lines[0].points))
    broken = records.changed(broken, curves=lines)
    text = page([broken, made.ablation(SITES)])
    assert "could not be drawn" in text
    assert 'data-name="ablation-map"' in text


@dataclass(frozen=True)
class Flock(Result):
    """The result of a study that headcount does not have."""

    sheep: int
    breed: str


def test_a_record_no_section_knows_is_shown_as_it_is() -> None:
    text = page([Record("counting sheep", Signature("farm/one"), Flock(42, "<merino>"))])
    assert "counting sheep" in text
    assert ">42<" in text.replace("42.0000", "42")
    assert "&lt;merino&gt;" in text


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (Column("", 2), -0.5, "\u22120.50"), (Column("", 2, signed=True), 0.5, "+0.50"), 
        (Column("", 2, signed=True), 2e-17, "+0.00"), (Column("p", 4), 2e-17, "2e\u221217"),
        (Column("", 2), 0.00002, "2e\u221205"), (Column("", 2), -0.00002, "\u22122e\u221205"),
        (Column("", unit="B"), 999_700, "1MB"), (Column("", unit=""), 999_499, "999k"), (Column("", unit=""), 0, "0"),
        (Column("", 2), 0, "0.00"), (Column(""), None, "\u2013"), (Column(""), True, "yes"), (Column(""), 12, "12"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_the_digits_they_deserve(column: Column, value: Any, text: str) -> None:
    assert column.text(value) == text


# the command


def test_the_command_writes_a_page_and_shows_the_same_in_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    made.ablation(SITES).save(folder / "record.json")
    other = made.score(SITES).save(tmp_path / "score.json")
    out = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["report", str(folder), str(other), "--out", str(out), "--title", "My heads"])
    assert done.exit_code == 0, done.output
    assert "<title>My heads</title>" in out.read_text(encoding="utf-8")
    shown = CliRunner().invoke(main, ["report", str(folder), str(other), "--plain"]).output
    for section in (sections["ablation"], sections["scores"]):
        assert section.question in shown
    assert "Beside the paper" in shown
    assert "headcount bench" in shown
    short = CliRunner().invoke(main, ["report", str(folder), "--short"]).output
    assert sections["ablation"].question in short
    assert "Beside the paper" not in short
    assert CliRunner().invoke(main, ["report", str(tmp_path / "none")]).exit_code == 2
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    assert CliRunner().invoke(main, ["report", str(tmp_path / "bad.json")]).exit_code == 1


def test_figures_are_drawn_from_combined_records_too(tmp_path: Path) -> None:
    file = made.combined([made.ablation(SITES), made.curves(SITES)]).save(tmp_path / "record.json")
    out = tmp_path / "figures"
    done = CliRunner().invoke(main, ["figure", "all", str(file), "--format", "svg", "--out", str(out)])
    assert done.exit_code == 0, done.output
    drawn = {"ablation-map.svg", "ablation-histogram.svg", "pruning-curves.svg", "pruning-by-kind.svg"}
    assert drawn <= {path.name for path in out.iterdir()}
    one = CliRunner().invoke(main, ["figure", "pruning-curves", str(tmp_path), "--format", "svg", "--out", str(out)])
    assert one.exit_code == 0, one.output
    unknown = CliRunner().invoke(main, ["figure", "speeed", str(file), "--out", str(out)])
    assert "Invalid value for 'FIGURE': 'speeed' is not one of" in unknown.output
    wrong = CliRunner().invoke(main, ["figure", "speed", str(file), "--out", str(out)])
    assert wrong.exit_code == 2
    assert "needs rows" in wrong.output


def test_a_page_of_12_by_12_by_3_heads_needs_no_torch_and_is_quick(tmp_path: Path) -> None:
    sites = made.even(12, 12)
    files = [
        str(record.save(tmp_path / f"{number}.json"))
        for number, record in enumerate([made.ablation(sites), made.score(sites), made.curves(sites)])
    ]
    arguments = ["report", *files, "--out", str(tmp_path / "report.html")]
    check = "import sys, time; assert 'torch' not in sys.modules; print('CPU', time.process_time())"
    code = f"from headcount.cli.main import main; main({arguments!r}, standalone_mode=False); {check}"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    # 3 seconds on a free core; what other work on the machine does to caches and clocks is left room for
    assert float(done.stdout.rpartition("CPU")[2]) < 9


def test_the_ledger_stands_right_after_the_map(whole: str) -> None:
    assert re.findall(r'<section id="([^"]*)"', whole)[:4] == ["overview", "heads", "ledger", "short"]
    assert "3 claims of the papers: here 1 holds, 1 does not, 1 is open (1 for want of a record)." in whole


def test_ledgers_of_both_papers_belong_to_one_model() -> None:
    voita, michel = (
        replace(record, signature=replace(record.signature, arguments={"study": study}))
        for record, study in ((made.ledger(), "voita2019"), (made.ledger(), "michel2019"))
    )
    (subject,) = subjects([made.combined([made.roles(SITES), voita]), made.combined([made.curves(SITES), michel])])
    assert len(subject.of("ledger")) == 2


def test_numbers_to_sort_by_are_plain_numbers_wherever_they_come_from() -> None:
    """numpy writes its own as np.float64(0.5), which the page would sort as text."""
    html = _table(Table("Areas", [Column("value", 2)], [[np.float64(0.5)], [2], ["none"]]))
    assert re.findall('data-value="(.*?)"', html) == ["0.5", "2"]


def test_one_head_was_removed_and_a_change_has_its_sign() -> None:
    names = made.names(made.ONE_LAYER)
    one = records.changed(made.pruned(made.ONE_LAYER), removed_heads=names[:1], heads=names[1:], curve=None)
    assert sections["pruned"].answer(one).startswith("1 of 4 heads was removed by ")
    assert "1 of 4 heads was removed: " in overview(*subjects([one]), names)[3].answer
    columns = [column for table in sections["pruned"].tables([("a", one)]) for column in table.columns]
    assert [column.signed for column in columns if column.name == "change"] == [True]


def test_names_of_scores_have_their_method_once() -> None:
    some = [made.score(SITES), made.score(SITES, "fisher")]
    tables = sections["scores"].tables(labelled_for(sections["scores"], subjects(some)))
    assert [column.name for column in tables[0].columns] == ["rank", "gradient", "fisher"]
    assert tables[1].rows[0][:2] == ["gradient", "fisher"]


def test_large_perplexities_have_no_exponent() -> None:
    quality = {"metric": "perplexity", "value": 50263.4, "low": 49001.0, "high": 51999.0}
    record = records.changed(made.evaluation(), quality=quality, measures={"perplexity": 50263.4})
    assert "is 50263 (95% 49001 to 51999)" in sections["evaluation"].answer(record)


def test_an_architecture_has_its_article() -> None:
    record = records.changed(made.inspection(), architecture="AlbertModel")
    assert " is an AlbertModel with " in overview(*subjects([record]), ["encoder.0.0"])[0].answer
