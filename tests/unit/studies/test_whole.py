"""Whole studies: every part once, interrupted or not, with what is missing and why."""

from __future__ import annotations

import multiprocessing
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
import laboratory
import zoo
from forks import PATIENCE, started
from headcount.checkpoints.chosen_on import write_chosen_on
from headcount.checkpoints.loading import Loading
from headcount.claims.pool import LEDGER
from headcount.corpora.source import Source
from headcount.errors import RecordError, UnknownName, UsageError
from headcount.progress import silent
from headcount.record import Record
from headcount.record.codec import encode
from headcount.report.figure import figures
from headcount.report.papers import shown
from headcount.report.section import ordered
from headcount.report.subject import subjects
from headcount.studies import parts, point
from headcount.studies.explore import ExploreSettings, explore
from headcount.studies.study_settings import StudySettings
from headcount.studies.subject import StudySubject
from headcount.studies.whole import whole_study
from headcount.tasks.overlap import UNKNOWN, Examples
from tokens import sentences, word_tokenizer

pytestmark = pytest.mark.usefixtures("unverified")


@pytest.fixture
def settings(tmp_path: Path) -> StudySettings:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    hc.save(
        BertForSequenceClassification(BertConfig(vocab_size=99, **size)), tmp_path / "m", tokenizer=word_tokenizer()
    )
    for split in ("dev", "test"):
        rows = [f"{len(text) % 2}\t{text}" for text in sentences(48, seed=len(split))]  # enough right answers for M1
        (tmp_path / f"{split}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    return StudySettings(
        model=str(tmp_path / "m"), source=Source(str(tmp_path), "dev"), task="classification", other_split="dev",
        random=1, step=0.5, orders=("gradient",), batches=(1,), lengths=(8,), repeats=1,
    )  # fmt: skip


def test_every_part_is_there_or_says_why(settings: StudySettings, tmp_path: Path) -> None:
    seen: list[int] = []
    refresh = lambda record: seen.append(len(record.parts.records))  # noqa: E731
    record = whole_study("michel2019", settings, tmp_path / "out", refresh=refresh)
    assert set(record.parts.records) == {"gradient", "ablation", "replacement", "curves", "speed", LEDGER}
    assert "has checkpoints named by epoch" in record.parts.missing["dynamics"]
    assert seen == sorted(seen)
    assert len(seen) == 7
    verdicts = {row.number: row for row in record.parts.records[LEDGER].parts.verdicts}
    assert [verdicts[number].models for number in ("M1", "M2", "M4", "M5")] == [1, 1, 0, 1]  # no step near 20%
    assert "has checkpoints named by epoch" in verdicts["M8"].detail
    assert Record.load(tmp_path / "out" / "record.json").to_json() == record.to_json()
    assert record.parts.name == "michel2019"
    assert record.parts.records["ablation"].parts.other is not None
    paths = {part: one.signature.arguments.get("data") for part, one in record.parts.records.items()}
    assert (paths["gradient"], paths["ablation"]) == (f"{tmp_path} dev", f"{tmp_path} test")
    assert paths["curves"] == str(tmp_path), "it says itself what it was measured on"


def test_ablation_knows_what_heads_of_a_pruned_model_were_chosen_on(settings: StudySettings, tmp_path: Path) -> None:
    """`headcount ablate` did; in whole studies, M1 to M3 were decided on the texts that heads were chosen on."""
    labelled = [line.split("\t") for line in (tmp_path / "test.tsv").read_text().splitlines()[1:]]
    texts, labels = [text for _, text in labelled], [int(label) for label, _ in labelled]
    test = hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer())
    write_chosen_on(tmp_path / "m", [Examples.of(test)])
    record = whole_study("michel2019", settings, tmp_path / "out", parts=["ablation"])
    measured = record.parts.records["ablation"].parts.measured_on
    assert (measured.overlap, measured.held_out) == (48, False)
    verdicts = {row.number: row for row in record.parts.records[LEDGER].parts.verdicts}
    for number in ("M1", "M2", "M3"):
        assert (verdicts[number].models, "the very examples" in verdicts[number].detail) == (0, True)


def test_exploring_knows_what_heads_of_a_pruned_model_were_chosen_on(tmp_path: Path) -> None:
    hc.save(zoo.build("llama"), tmp_path / "small", tokenizer=word_tokenizer())
    (tmp_path / "texts.txt").write_text("\n".join(sentences(12)) + "\n")
    write_chosen_on(tmp_path / "small", [UNKNOWN])
    settings = ExploreSettings(model=str(tmp_path / "small"), source=Source(str(tmp_path / "texts.txt")))
    measured = explore(settings, tmp_path / "out").parts.records["ablation"].parts.measured_on
    assert (measured.examples, measured.held_out) == (12, None)


def test_finished_parts_are_not_run_again(
    settings: StudySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(subject: StudySubject) -> Record:
        raise KeyboardInterrupt

    once = whole_study("michel2019", settings, tmp_path / "once", parts=["gradient", "ablation", "curves"])
    monkeypatch.setitem(parts.PARTS, "curves", interrupted)
    with pytest.raises(KeyboardInterrupt):
        whole_study("michel2019", settings, tmp_path / "twice", parts=["gradient", "ablation", "curves"])
    monkeypatch.undo()
    monkeypatch.setitem(parts.PARTS, "ablation", interrupted)
    twice = whole_study("michel2019", settings, tmp_path / "twice", parts=["gradient", "ablation", "curves"])
    for part, found in once.parts.records.items():
        assert encode(twice.parts.records[part].parts) == encode(found.parts)


def test_a_record_is_not_replaced_by_one_with_fewer_parts(settings: StudySettings, tmp_path: Path) -> None:
    """The same command again, or a slower process of it, may be killed at any moment."""
    out = tmp_path / "out"
    whole_study("michel2019", settings, out, parts=["gradient", "ablation"])
    at_each_part: list[set[str]] = []

    def refresh(_: Record) -> None:
        at_each_part.append(set(Record.load(out / "record.json").parts.records))

    whole_study("michel2019", settings, out, parts=["gradient", "ablation", "curves"], refresh=refresh)
    assert at_each_part[:2] == [{"gradient", "ablation", LEDGER}] * 2
    assert at_each_part[2:] == [{"gradient", "ablation", "curves"}, {"gradient", "ablation", "curves", LEDGER}]


def test_fewer_parts_leave_the_others_in_the_record(settings: StudySettings, tmp_path: Path) -> None:
    out, both = tmp_path / "out", {"gradient", "ablation", LEDGER}
    whole_study("michel2019", settings, out, parts=["ablation", "gradient", "dynamics"])
    record = whole_study("michel2019", settings, out, parts=["gradient"])
    assert set(record.parts.records) == set(Record.load(out / "record.json").parts.records) == both
    assert set(record.parts.missing) == {"dynamics"}
    at_each_part: list[set[str]] = []

    def refresh(_: Record) -> None:
        at_each_part.append(set(Record.load(out / "record.json").parts.records))

    whole_study("michel2019", settings, out, parts=["speed"], refresh=refresh)
    assert all(both - {LEDGER} <= found for found in at_each_part)
    assert at_each_part[-1] == {*both, "speed"}
    with pytest.raises(UsageError, match="contains the study michel2019 with gradient, ablation, speed"):
        whole_study("voita2019", settings, out)


def test_a_damaged_part_is_refused_before_any_work(settings: StudySettings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole_study("michel2019", settings, out, parts=["gradient"])
    damaged = out / "parts" / "gradient.json"
    damaged.write_text(damaged.read_text()[:-100])
    started: list[Record] = []
    with pytest.raises(RecordError, match=r"gradient.json is not JSON.* Delete .*gradient.json to run that part again"):
        whole_study("michel2019", settings, out, parts=["gradient", "ablation"], refresh=started.append)
    assert not started
    damaged.unlink()
    record = whole_study("michel2019", settings, out, parts=["gradient", "ablation"])
    assert {"gradient", "ablation"} <= set(record.parts.records)


def test_a_head_that_cannot_be_is_refused_with_the_name_of_the_file(settings: StudySettings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole_study("michel2019", settings, out, parts=["gradient"])
    wrong = out / "parts" / "gradient.json"
    wrong.write_text(wrong.read_text().replace("encoder.0.0", "encoder.-1.0"))
    with pytest.raises(RecordError, match=r"gradient.json .*'encoder.-1.0'.* Delete .*gradient.json to run that part"):
        whole_study("michel2019", settings, out, parts=["gradient"])


def test_a_part_finds_those_it_needs_in_any_order(settings: StudySettings, tmp_path: Path) -> None:
    """The attention shown is that of a head chosen by its role, which no head of this random model has."""
    short = replace(settings, source=replace(settings.source, limit=4))
    together = whole_study("voita2019", short, tmp_path / "together", parts=["attention", "roles"])
    whole_study("voita2019", short, tmp_path / "apart", parts=["roles"])
    apart = whole_study("voita2019", short, tmp_path / "apart", parts=["attention"])
    assert "No head looks at rare tokens" in together.parts.missing["attention"]
    assert apart.parts.missing == together.parts.missing
    assert set(apart.parts.records) == {"roles", LEDGER}


def test_roles_have_the_relevance_that_is_measured_later(settings: StudySettings, tmp_path: Path) -> None:
    short = replace(settings, source=replace(settings.source, limit=4))
    together = whole_study("voita2019", short, tmp_path / "together", parts=["relevance", "roles"])
    whole_study("voita2019", short, tmp_path / "apart", parts=["roles"])
    apart = whole_study("voita2019", short, tmp_path / "apart", parts=["relevance"])
    assert together.parts.records["roles"].parts.relevance
    for part in ("relevance", "roles"):
        assert encode(apart.parts.records[part].parts) == encode(together.parts.records[part].parts)
    assert Record.load(tmp_path / "apart" / "parts" / "roles.json").parts == apart.parts.records["roles"].parts


def test_other_settings_need_another_folder(settings: StudySettings, tmp_path: Path) -> None:
    whole_study("michel2019", settings, tmp_path / "out", parts=["gradient"])
    with pytest.raises(UsageError, match=r"step: 0.5 there, 0.25 now"):
        whole_study("michel2019", replace(settings, step=0.25), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(UsageError, match="holds something else"):
        whole_study("michel2019", settings, tmp_path / "full")


def test_another_model_under_the_same_name_needs_another_folder(settings: StudySettings, tmp_path: Path) -> None:
    whole_study("michel2019", settings, tmp_path / "out", parts=["gradient"])
    model = hc.load(settings.model)
    with torch.no_grad():
        model.classifier.bias += 1
    hc.save(model, settings.model, tokenizer=word_tokenizer(), overwrite=True)
    with pytest.raises(UsageError, match=r"weights: .* there, .* now"):
        whole_study("michel2019", settings, tmp_path / "out", parts=["gradient", "ablation"])


def test_a_finished_study_is_not_that_of_another_model_data_type_or_data(
    settings: StudySettings, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    whole_study("michel2019", settings, out, parts=["gradient"])
    whole_study("michel2019", settings, out, parts=["gradient"])
    with pytest.raises(UsageError, match=r"weights: .* there, .* now"):
        whole_study("michel2019", settings, out, loading=Loading(dtype="bfloat16"), parts=["gradient"])
    dev = tmp_path / "dev.tsv"
    dev.write_text(dev.read_text().replace("1\t", "0\t"))
    with pytest.raises(UsageError, match=r"choosing: .* there, .* now"):
        whole_study("michel2019", settings, out, parts=["gradient"])


@pytest.mark.parametrize(
    ("file", "text", "part"),
    [
        ("dev.tsv", "sentences", "roles"),
        ("train.tsv", "training", "tradeoff"),
        ("trees/dev.txt", "sentences", "roles"),
    ],
)
def test_a_folder_is_not_gone_on_with_after_texts_of_single_parts_changed(
    settings: StudySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, part: str
) -> None:
    """Those that heads are chosen and measured on stay: they are the first 6 of their splits."""

    def skipped(_: StudySubject) -> Record:
        raise UsageError("not in this test")

    monkeypatch.setitem(parts.PARTS, part, skipped)
    (tmp_path / "train.tsv").write_text((tmp_path / "dev.tsv").read_text())
    (tmp_path / "trees").mkdir()
    (tmp_path / "trees" / "dev.txt").write_text("w1 w2 w3\nw4 w5 w6\n")
    trees = str(tmp_path / "trees") if file.startswith("trees") else ""
    settings = replace(settings, source=replace(settings.source, limit=6), role_limit=60, trees=trees)
    out = tmp_path / "out"
    for _ in range(2):
        whole_study("voita2019", settings, out, parts=[part])
    with (tmp_path / file).open("a") as changed:
        changed.write("1\tw7 w8\n" if file.endswith("tsv") else "w7 w8\n")
    with pytest.raises(UsageError, match=rf"{text}: .* there, .* now"):
        whole_study("voita2019", settings, out, parts=[part])
    (out / f"{text}.json").unlink()  # as in a folder that was begun before texts had such files
    whole_study("voita2019", settings, out, parts=[part])


def test_a_text_that_is_added_later_is_read_later(settings: StudySettings, tmp_path: Path) -> None:
    subject = StudySubject(settings, Loading(), tmp_path / "unfinished", silent)
    assert subject.text_hash("training") is None
    (tmp_path / "train.tsv").write_text((tmp_path / "dev.tsv").read_text())
    assert subject.text_hash("training")


def test_another_tokenizer_under_the_same_name_needs_another_folder(settings: StudySettings, tmp_path: Path) -> None:
    whole_study("michel2019", settings, tmp_path / "out", parts=["gradient"])
    word_tokenizer(framed=True).save_pretrained(settings.model)
    with pytest.raises(UsageError, match=r"tokens: .* there, .* now"):
        whole_study("michel2019", settings, tmp_path / "out", parts=["gradient", "ablation"])


def test_any_character_of_a_setting_is_written_as_toml(settings: StudySettings) -> None:
    named = replace(settings, model='m\U0001f600 "\u00e9" \x7f\t\\')
    assert StudySettings.read(tomllib.loads(named.to_toml())) == named


def test_settings_are_read_and_written(settings: StudySettings) -> None:
    assert StudySettings.read(tomllib.loads(settings.to_toml())) == settings
    with pytest.raises(UnknownName, match="measure_split"):
        StudySettings.read({"model": "m", "source": {"data": "d"}, "measure_splits": "test"})
    with pytest.raises(UnknownName, match="limit"):
        StudySettings.read({"model": "m", "source": {"data": "d", "limits": 3}})
    for wrong, message in (
        ({"step": "a"}, "The setting step must be a number; got 'a'"),
        ({"seeds": 3}, "seeds must be a list of whole numbers; got 3"),
        ({"orders": "gradient"}, "orders must be a list of texts; got 'gradient'"),
        ({"max_length": 1}, "max_length must be at least 2; got 1"),
        ({"source": {"data": "d", "limit": "a"}}, "The setting of the source limit must be a whole number; got 'a'"),
        ({"source": {"data": "d", "limit": -1}}, "limit must be at least 1; got -1"),
        ({"source": {"data": "d", "columns": {"text": 3}}}, "columns must be a table"),
    ):
        with pytest.raises(UsageError, match=message):
            StudySettings.read({"model": "m", "source": {"data": "d"}, **wrong})
    with pytest.raises(UsageError, match="needs a data"):
        StudySettings.read({"model": "m"})
    with pytest.raises(UnknownName, match="ablation"):
        whole_study("michel2019", settings, Path("nowhere"), parts=["ablations"])
    assert not Path("nowhere").exists()


@pytest.fixture
def translation(tmp_path: Path) -> StudySettings:
    """A small translation model, and parallel text without trees."""
    tokenizer = laboratory.vocabulary(tmp_path / "v")
    hc.save(laboratory.model(tokenizer), tmp_path / "translation", tokenizer=tokenizer)
    (tmp_path / "data").mkdir()
    for split, pairs in laboratory.parallel(held_out=12).splits.items():
        (tmp_path / "data" / f"{split}.en").write_text("\n".join(pairs["source"]) + "\n")
        (tmp_path / "data" / f"{split}.xx").write_text("\n".join(pairs["target"]) + "\n")
    return StudySettings(
        model=str(tmp_path / "translation"), metric="loss",
        source=Source(str(tmp_path / "data"), "dev", languages=("en", "xx"), limit=10), train_limit=60, keep=(5, 2),
        ways=("l0", "random/untuned"), gate_steps=2, tune_steps=2,
        scratch_steps=2, all_kinds_keep=(9,),
    )  # fmt: skip


def test_the_trade_off_gives_its_tables_and_figures(translation: StudySettings, tmp_path: Path) -> None:
    record = whole_study("voita2019", translation, tmp_path / "out", parts=["roles", "tradeoff", "all-kinds"])
    assert record.parts.missing == {}
    encoder, every = (record.parts.records[part].parts for part in ("tradeoff", "all-kinds"))
    assert [row.keep for row in every.all_kinds] == [9]
    assert every.all_kinds[0].scratch.value > 0
    assert encoder.looked.sentences == 10
    assert encoder.whole_roles.keys() == {f"encoder.{layer}.{head}" for layer in range(2) for head in range(4)}
    lines = {
        line.exhibit.name: line
        for line in shown(subjects([record]), ordered(), dict(figures.items()))
        if line.exhibit.paper == "voita2019"
    }
    places = {name: lines[name].section for name in ("Figure 6", "Figure 7", "Figure 8", "Table 2")}
    assert places == {"Figure 6": "tradeoff", "Figure 7": "tradeoff", "Figure 8": "tradeoff", "Table 2": "all-kinds"}
    assert lines["Figure 9"].section == lines["Figure 10"].section == "all-kinds"
    assert lines["Table 1"].reason == "the sentences had no trees"
    assert lines["Figure 5"].reason.startswith("not measured; headcount study voita2019")


def test_the_slower_of_two_processes_keeps_the_points_of_the_other(
    translation: StudySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process holds a point while this one passes it, and ends the study before this one does."""
    plan = replace(translation, ways=("random/untuned",))
    out, making = tmp_path / "out", point._make
    under_way, passed = multiprocessing.Event(), multiprocessing.Event()

    def held(*inputs: Any) -> point.PointFile:
        under_way.set()
        assert passed.wait(PATIENCE)
        return making(*inputs)

    def study(refresh: Callable[[Record], None] = lambda _: None) -> Record:
        return whole_study("voita2019", plan, out, parts=["tradeoff"], refresh=refresh)

    def wait_for_other(record: Record) -> None:
        if LEDGER not in record.parts.records:
            unfinished.append(record.parts.records["tradeoff"].parts.unfinished)
            passed.set()
            other.join(PATIENCE)

    unfinished: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(point, "_make", held)
        other = started(study)
    assert under_way.wait(PATIENCE)
    record = study(wait_for_other)
    assert (unfinished, other.exitcode) == ([1], 0)
    alone = whole_study("voita2019", plan, tmp_path / "alone", parts=["tradeoff"])
    assert Record.load(out / "record.json").to_json() == record.to_json()
    for part in ("tradeoff", LEDGER):
        assert Record.load(out / "parts" / f"{part}.json").to_json() == record.parts.records[part].to_json()
    assert record.parts.records["tradeoff"].parts.unfinished == 0
    points = [[row.heads for row in study.parts.records["tradeoff"].parts.points] for study in (record, alone)]
    assert points[0] == points[1]
    verdicts = [encode(study.parts.records[LEDGER].parts) for study in (record, alone)]
    assert verdicts[0] == verdicts[1]


def test_what_the_trade_off_cannot_give_is_said(
    translation: StudySettings, settings: StudySettings, tmp_path: Path
) -> None:
    short = replace(translation, all_kinds_ways=())
    record = whole_study("voita2019", short, tmp_path / "out", parts=["all-kinds"])
    assert record.parts.missing == {"all-kinds": "Disabled in the settings: all_kinds_ways is empty."}
    alone = replace(
        settings,
        source=replace(settings.source, limit=6),
        train_limit=6,
        keep=(3,),
        ways=("random",),
        gate_steps=1,
        tune_steps=1,
    )
    (tmp_path / "train.tsv").write_text((tmp_path / "dev.tsv").read_text())
    record = whole_study("voita2019", alone, tmp_path / "alone", parts=["roles", "tradeoff", "all-kinds"])
    assert "has only encoder heads" in record.parts.missing["all-kinds"]
    own = record.parts.records
    assert own["tradeoff"].parts.looked.sentences == own["roles"].parts.sentences == 6
    treeless = replace(alone, trees=str(tmp_path / "nowhere.conllu"))
    record = whole_study("voita2019", treeless, tmp_path / "treeless", parts=["roles", "tradeoff"])
    assert "nowhere.conllu" in record.parts.missing["roles"]
    lines = shown(subjects([record]), ordered(), dict(figures.items()))
    (line,) = (one for one in lines if one.exhibit.name == "Figure 8")
    assert line.reason == record.parts.missing["roles"]


def test_beams_are_those_of_every_part(tmp_path: Path) -> None:
    for beams in (1, 4):
        settings = StudySettings("model", Source("grammar", "dev"), beams=beams)
        assert StudySubject(settings, Loading(), tmp_path, silent).work.decoding["beams"] == beams


def test_of_one_file_heads_are_chosen_on_one_half_and_measured_on_the_other(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("w5 w6\nw7 w8\n")
    settings = StudySettings("model", Source(str(tmp_path / "texts.txt"), "dev"), task="language-modelling")
    subject = StudySubject(settings, Loading(), tmp_path, silent)
    assert [work.source.split_label for work in subject.workloads] == [
        "one half of texts.txt",
        "the other half of texts.txt",
    ]
