"""A folder that is used again, with another model, other options or other data: nothing that stood there is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
import records as made
import subjects
import zoo
from headcount import journal
from headcount.cli.commands.evaluate import remove_replaced_translations, write_translations
from headcount.cli.main import main
from headcount.cli.options import Output
from headcount.cli.unfinished import check_unfinished
from headcount.errors import FolderError
from headcount.pruning.search import Search
from headcount.record import Record, Signature
from headcount.record.result import Quality
from headcount.record.results.evaluate import Evaluation
from headcount.training.loop import Loop
from tokens import sentences, word_tokenizer

pytestmark = pytest.mark.usefixtures("unverified")
STAYS = "is now .*: it was yours, or that of an earlier run with other settings or data"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def done(*arguments: str) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier and a language model, with texts."""
    folder = tmp_path_factory.mktemp("place")
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    hc.save(
        BertForSequenceClassification(BertConfig(vocab_size=99, **size)), folder / "bert", tokenizer=word_tokenizer()
    )
    hc.save(zoo.build("gpt2"), folder / "gpt2", tokenizer=word_tokenizer())
    for number, split in enumerate(("train", "dev", "test")):
        rows = [f"{len(text) % 2}\t{text}" for text in sentences(60)[20 * number :][:20]]
        (folder / f"{split}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    (folder / "texts.txt").write_text("\n".join(sentences(6)))
    return folder


def classified(place: Path, *options: str) -> list[str]:
    return [str(place / "bert"), "--task", "classification", "--data", str(place), "--format", "svg", *options]


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_record_that_is_saved_over_another_leaves_it_there(tmp_path: Path) -> None:
    first, other = subjects.score(subjects.ONE_LAYER), subjects.score(subjects.ONE_LAYER, model="shop/model-b")
    first.save(tmp_path / "r.json")
    replace(first, signature=replace(first.signature, time="later", versions={})).save(tmp_path / "r.json")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    with pytest.warns(UserWarning, match=STAYS):
        other.save(tmp_path / "r.json")
    assert Record.load(tmp_path / "r.json.old").signature.model == first.signature.model


def test_figures_of_a_record_that_stays_stay_too(tmp_path: Path) -> None:
    output = Output(tmp_path, ("svg",), all_rows=False, as_json=False, study="ablate")
    settings = Signature("shop/model-a", data="of one", arguments={"early": False})
    first = replace(subjects.ablation(subjects.ONE_LAYER), signature=settings)
    output.save(first)
    before = {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
    other = subjects.ablation(subjects.ONE_LAYER, seed=5)
    output.save(replace(other, signature=replace(settings, data="of another")))
    assert {path.name: path.read_bytes() for path in (tmp_path / "figures.old").iterdir()} == before
    assert {path.name for path in (tmp_path / "figures").iterdir()} == set(before)
    assert (tmp_path / "record.json.old").is_file()


def test_figures_of_a_record_that_is_measured_again_go_but_not_with_changes_of_the_user(tmp_path: Path) -> None:
    output = Output(tmp_path, ("svg", "pdf"), all_rows=False, as_json=False, study="bench")
    first = subjects.bench(12)
    rows = [replace(row, seconds=2 * row.seconds, per_second=row.per_second / 2) for row in first.parts.rows]
    again = replace(first, parts=replace(first.parts, rows=tuple(rows)))
    output.save(first)
    before = {path.name for path in tmp_path.rglob("*")}
    output.save(again)
    assert {path.name for path in tmp_path.rglob("*")} == before
    (tmp_path / "figures" / "speed.svg").write_text("<svg>with my arrows</svg>")
    output.save(first)
    assert {path.name for path in tmp_path.rglob("*")} == before | {"speed.svg.old"}


def test_figures_of_another_model_stay(tmp_path: Path) -> None:
    """`headcount figure` writes into figures/ by default, whatever it draws."""
    for name in ("a", "b"):
        made.ablation(f"shop/{name}", seed=ord(name)).save(tmp_path / name / "record.json")
        done("figure", "ablation-map", str(tmp_path / name), "--format", "svg", "--out", str(tmp_path / "figures"))
    for ending in ("svg", "csv"):
        assert (tmp_path / "figures" / f"ablation-map.{ending}.old").is_file()
    assert "shop/a" in (tmp_path / "figures" / "ablation-map.csv.old").read_text()
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    done("figure", "ablation-map", str(tmp_path / "b"), "--format", "svg", "--out", str(tmp_path / "figures"))
    assert {path.name for path in (tmp_path / "figures").iterdir()} == names, "the same once more"


def test_a_figure_that_the_user_has_changed_stays(tmp_path: Path) -> None:
    made.ablation().save(tmp_path / "record.json")
    command = ["figure", "ablation-map", str(tmp_path), "--format", "svg", "--out", str(tmp_path / "figures")]
    done(*command)
    drawn = tmp_path / "figures" / "ablation-map.svg"
    drawn.write_text("<svg>with my arrows</svg>")
    done(*command)
    assert drawn.with_name("ablation-map.svg.old").read_text() == "<svg>with my arrows</svg>"


def test_translations_that_the_user_has_changed_stay(tmp_path: Path) -> None:
    parts = Evaluation("translation", Quality("BLEU", 20.0, 15.0, 25.0), {"BLEU": 20.0}, 2, (), (), {}, ("one", "two"))
    record, file = Record("evaluate", Signature("m"), parts), tmp_path / "translations.txt"
    file.write_text("mine")
    write_translations(file, record)
    assert file.with_name("translations.txt.old").read_text() == "mine"
    record.save(tmp_path / "record.json")
    file.write_text("one!\ntwo\n")
    remove_replaced_translations(file)
    assert file.with_name("translations.txt.old2").read_text() == "one!\ntwo\n"


def test_a_page_of_another_model_stays(tmp_path: Path) -> None:
    for name in ("a", "b"):
        subjects.evaluation(f"{name}/model").save(tmp_path / name / "record.json")
    page = tmp_path / "report.html"
    done("report", str(tmp_path / "a"), "--out", str(page))
    first = page.read_bytes()
    done("report", str(tmp_path / "a"), "--out", str(page), "--title", "The same")
    assert not page.with_name("report.html.old").exists()
    done("report", str(tmp_path / "a"), "--out", str(page))
    done("report", str(tmp_path / "b"), "--out", str(page))
    assert page.with_name("report.html.old").read_bytes() == first


def test_a_record_in_the_folder_of_an_interrupted_study_stays(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "study"
    study = ["study", "michel2019", *classified(place), "--parts", "gradient", "--out", str(out)]
    with monkeypatch.context() as patch:
        patch.setattr("headcount.studies.scoring.scoring", interrupted)
        assert run(*study).exit_code == 1
    assert (out / "settings.json").is_file()
    done("score", *classified(place), "--method", "magnitude", "--out", str(out))
    done(*study)
    assert Record.load(out / "record.json").study == "combined"
    assert Record.load(out / "record.json.old").study == "score"
    done(*study)
    assert not (out / "record.json.old2").exists()


def test_attention_on_other_sentences_stays(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.report.html._drawn", lambda *_: ('<svg viewBox="0 0 9 9" width="9"></svg>', "A."))
    command = ["explore", str(place / "gpt2"), "--data", str(place / "texts.txt"), "--limit", "6", "--one-out", "2"]
    for text in ("w5 w6 w7", "w8 w9 w10"):
        done(*command, "--out", str(tmp_path / "out"), "--text", text)
    earlier = Record.load(tmp_path / "out" / "parts" / "examples.json.old")
    assert earlier.signature.arguments["texts"] == ["w5 w6 w7"]


def test_a_checkpoint_of_the_user_with_the_name_of_a_point_stays(place: Path, tmp_path: Path) -> None:
    own = tmp_path / "models" / "random.untuned-4-0"
    hc.save(zoo.build("bert"), own)
    before = (own / "model.safetensors").read_bytes()
    asked = ["--keep", "4", "--ways", "random/untuned", "--no-roles", "--save-models", "--out", str(tmp_path)]
    done("study", "tradeoff", *classified(place, *asked))
    assert (own.with_name(f"{own.name}.old") / "model.safetensors").read_bytes() == before
    assert len(hc.locate(hc.load(own)).heads) == 4


@pytest.mark.parametrize("command", ["ablate", "score", "curves"])
def test_files_of_the_user_in_unfinished_work_stay(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Also those that end as files of headcount do."""
    own = {"notes.json": "{}", "run.jsonl": "{}", "probe.safetensors": "mine", "a.claim": "mine", "notes.txt": "mine"}
    study = ["study", "curves"] if command == "curves" else [command]
    asked = [*study, *classified(place, "--limit", "6", "--out", str(tmp_path))]
    with monkeypatch.context() as patch:
        patch.setattr("headcount.cli.options.Output.save", interrupted)
        assert run(*asked).exit_code == 1
    for name, text in own.items():
        (tmp_path / "unfinished" / name).write_text(text)
    done(*asked)
    files = [path for path in (tmp_path / "unfinished").rglob("*") if path.is_file()]
    assert {path.name: path.read_text() for path in files} == own


def test_a_note_that_another_process_is_writing_is_no_file_of_the_user(tmp_path: Path) -> None:
    """The second of two processes that began at once was refused."""
    with journal.new_file(tmp_path / "study.json") as fresh:
        fresh.write_text("{}")
        check_unfinished(tmp_path, "ablate")
    (tmp_path / "mine").touch()
    with pytest.raises(FolderError, match="has files that headcount did not write"):
        check_unfinished(tmp_path, "ablate")


def test_a_search_that_is_refused_before_its_first_step_leaves_no_folder(place: Path, tmp_path: Path) -> None:
    """The corrected command was refused: "begun with other settings"."""
    search = ["prune", str(place / "gpt2"), "--choose", "greedy", "--candidates", "1", "--rule", "uniform"]
    search += ["--task", "language-modelling", "--data", str(place / "texts.txt"), "--out", str(tmp_path / "out")]
    refused = run(*search, "--keep", "7")
    assert "Cannot keep 7" in " ".join(refused.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_shorter_search_leaves_the_steps_of_a_longer_one(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = ["prune", str(place / "gpt2"), "--choose", "greedy", "--candidates", "1", "--no-verify"]
    search += ["--task", "language-modelling", "--data", str(place / "texts.txt"), "--keep"]
    screen, calls = Search._screen, []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return screen(*arguments)

    monkeypatch.setattr(Search, "_screen", counted)
    out = ["--out", str(tmp_path / "out")]
    assert run(*search, "8", *out).exit_code == 1
    with pytest.warns(UserWarning, match="has the steps of a longer search"):
        done(*search, "10", *out)
    assert run(*search, "10", *out).exit_code == 1, "not empty"
    done(*search, "8", *out, "--overwrite")
    assert len(calls) == 4 + 1, "three of the four heads had been taken"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_finished_search_in_a_shape_is_not_kept_beside_an_unfinished_one(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a shape, searches of other budgets share no steps: those of the first one stayed for good, with a warning."""
    search = ["prune", str(place / "gpt2"), "--choose", "greedy", "--candidates", "1", "--no-verify", "--at-least", "1"]
    search += ["--task", "language-modelling", "--data", str(place / "texts.txt"), "--out", str(tmp_path / "out")]
    screen, calls = Search._screen, []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return screen(*arguments)

    monkeypatch.setattr(Search, "_screen", counted)
    assert run(*search, "--keep", "8").exit_code == 1
    with pytest.warns(UserWarning, match=r"search, or of one that was interrupted"):
        done(*search, "--keep", "10")
    assert len(list((tmp_path / "out.unfinished").glob("greedy-*"))) == 1, "that of 8"
    done(*search, "--keep", "8", "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_curves_that_are_interrupted_resume(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = ["study", "curves", *classified(place, "--random", "2", "--step", "50", "--limit", "8")]
    done(*curves, "--out", str(tmp_path / "whole"))
    usual, measured = BertForSequenceClassification.forward, []

    def forward(*arguments: Any, **options: Any) -> Any:
        measured.append(1)
        if len(measured) in stops:
            raise KeyboardInterrupt
        return usual(*arguments, **options)

    monkeypatch.setattr(BertForSequenceClassification, "forward", forward)
    stops: set[int] = set()
    done(*curves, "--out", str(tmp_path / "counted"))
    count = len(measured)
    stops = {count + count // 2, count + count - 2 + count // 2}
    measured_before = len(measured)
    asked = [*curves, "--out", str(tmp_path / "again")]
    while run(*asked).exit_code:
        assert (tmp_path / "again" / "unfinished" / "finished").is_dir()
    assert len(measured) - measured_before < 2 * count
    whole, again = (json.loads((tmp_path / name / "record.json").read_text()) for name in ("whole", "again"))
    assert whole["parts"] == again["parts"]
    assert not (tmp_path / "again" / "unfinished").exists()


def test_a_model_card_that_the_user_has_changed_stays(bert: nn.Module, tmp_path: Path) -> None:
    hc.save(bert, tmp_path / "model", tokenizer=word_tokenizer())
    command = ["prune", str(tmp_path / "model"), "--overwrite", "--out", str(tmp_path / "out"), "--remove"]
    done(*command, "encoder.0.1")
    done(*command, "encoder.0.2")
    card = tmp_path / "out" / "README.md"
    assert "`encoder.0.2`" in card.read_text()
    mine = card.read_text().replace("# model without", "# Measured by me on our texts: .93\n\n# model without")
    card.write_text(mine)
    assert "Your README.md stays; the model card is MODEL_CARD.md." in done(*command, "encoder.0.3").output
    assert card.read_text() == mine
    assert "`encoder.0.3`" in card.with_name("MODEL_CARD.md").read_text()


def test_a_config_that_the_user_writes_while_a_model_is_trained_stays(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, own = Loop.run, tmp_path / "out" / "config.json"

    def writing(loop: Loop) -> Any:
        own.write_text('{"mine": 1}')
        return take(loop)

    train = ["train", str(place / "bert"), "--task", "classification", "--data", str(place), "--epochs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "run", writing)
        done(*train, "--out", str(tmp_path / "out"))
    assert own.with_name("config.json.old").read_text() == '{"mine": 1}'
    hc.load(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    done(*train, "--out", str(tmp_path / "out"))
    assert {path.name for path in (tmp_path / "out").iterdir()} == names


def test_what_is_set_aside_has_a_name_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "result.txt"
    for text in ("one", "two", "three", "three"):
        journal.write_text(file, text, replaces=journal.nothing)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "result.txt": "three", "result.txt.old": "one", "result.txt.old2": "two",
    }  # fmt: skip
