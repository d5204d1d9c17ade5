"""Train, evaluate, translate, score: a translation model from the command line, with wrong input too."""

from __future__ import annotations

import codecs
import fcntl
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import laboratory
from headcount import locks
from headcount.cli.commands.evaluate import remove_replaced_translations, write_translations
from headcount.cli.main import main
from headcount.record import Signature
from headcount.record.result import Quality
from headcount.record.results.evaluate import Evaluation

SMALL = (
    "--preset tiny --encoder-layers 3 --decoder-layers 2 --width 32 --inner 32 --heads 4 --vocabulary 200 --steps 30 "
    "--cooldown 10 --warmup 10 --batch 300"
)

pytestmark = pytest.mark.usefixtures("unverified")


def run(*arguments: str, input: str | bytes | None = None) -> Result:  # noqa: A002
    return CliRunner().invoke(main, list(arguments), input=input)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for split, pairs in laboratory.parallel().splits.items():
        (folder / f"{split}.en").write_text("\n".join(pairs["source"]) + "\n")
        (folder / f"{split}.xx").write_text("\n".join(pairs["target"]) + "\n")
    return folder


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    done = run("train", "--data", str(data), "--languages", "en,xx", *SMALL.split(), "--dev-bleu", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "bleu" in done.output
    assert f"Next: headcount evaluate {out} --data {data} --languages en,xx" in done.output
    return out


def test_training_writes_a_model_and_a_record(trained: Path) -> None:
    assert hc.load(trained, task="translation")
    record = hc.Record.load(trained / "record.json")
    assert record.signature.arguments["recipe"]["steps"] == 30
    assert record.signature.model == str(trained), "as in the records of what is measured on it"
    assert record.parts.texts == {"train": 300, "dev": 40}


def test_training_again_is_done_at_once(trained: Path, data: Path) -> None:
    before = (trained / "model.safetensors").read_bytes()
    done = run(
        "train", "--data", str(data), "--languages", "en,xx", *SMALL.split(), "--dev-bleu", "--out", str(trained)
    )
    assert done.exit_code == 0
    assert (trained / "model.safetensors").read_bytes() == before


def test_training_again_without_the_models_of_its_epochs_is_done_too(trained: Path, data: Path, tmp_path: Path) -> None:
    """They take most of the space of a finished run."""
    given = ["train", "--data", str(data), "--languages", "en,xx", *SMALL.split(), "--dev-bleu", "--seeds", "0"]
    shutil.copytree(trained, tmp_path / "m-0")
    before = (tmp_path / "m-0" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "m-0" / "epochs")
    done = run(*given, "--out", str(tmp_path / "m"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m-0" / "model.safetensors").read_bytes() == before


def test_processes_of_one_command_share_its_seeds(data: Path, tmp_path: Path) -> None:
    """Seed 3 is another process's at first; the same command later makes it, and takes no step of seed 4 again."""
    one_step = SMALL.replace("--steps 30", "--steps 1").replace("10", "1")
    train = ["train", "--data", str(data), "--languages", "en,xx", *one_step.split(), "--out", str(tmp_path / "model")]
    first, second = tmp_path / "model-3", tmp_path / "model-4"
    first.mkdir()
    with open(first / locks.FOLDER_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = run(*train, "--seeds", "3-4")
    assert done.exit_code == 0, done.output
    assert f"{first}: another process is training it" in done.output
    assert not (first / "config.json").exists()
    weights = (second / "model.safetensors").read_bytes()
    done = run(*train, "--seeds", "3-4")
    assert f"Next: headcount study all {first} {second} --data {data}" in done.output
    assert [hc.Record.load(folder / "record.json").signature.seed for folder in (first, second)] == [3, 4]
    assert (second / "model.safetensors").read_bytes() == weights != (first / "model.safetensors").read_bytes()
    assert not (tmp_path / "model").exists()


def test_evaluate_keeps_every_sentence(trained: Path, data: Path, tmp_path: Path) -> None:
    done = run("evaluate", str(trained), "--data", str(data), "--languages", "en,xx", "--out", str(tmp_path / "e"))
    assert done.exit_code == 0, done.output
    for word in ("BLEU", "chrF", "loss", "token accuracy", "tok:13a", "Next: echo"):
        assert word in done.output
    record = hc.Record.load(tmp_path / "e" / "record.json")
    assert len(record.parts.statistics) == 40
    assert record.signature.arguments["beams"] == 4
    assert len((tmp_path / "e" / "translations.txt").read_text().splitlines()) == 40
    as_json = run(
        "evaluate", str(trained), "--data", str(data), "--languages", "en,xx", "--limit", "3", "--beams", "1", "--json"
    )
    assert len(json.loads(as_json.stdout)["parts"]["translations"]) == 3


def test_translations_of_another_result_do_not_stay_beside_a_record(tmp_path: Path) -> None:
    quality, file = Quality("BLEU", 20.0, 15.0, 25.0), tmp_path / "translations.txt"
    parts = Evaluation("translation", quality, {"BLEU": 20.0}, 2, (), (), {}, ("one", "two"))
    record = hc.Record("evaluate", Signature("m"), parts)
    other = replace(record, parts=replace(record.parts, translations=None))
    file.write_text("a file of the user\n")
    remove_replaced_translations(file)
    write_translations(file, other)
    assert file.is_file()
    write_translations(file, record)
    record.save(tmp_path / "record.json")
    assert file.read_text() == "one\ntwo\n"
    remove_replaced_translations(file)
    write_translations(file, other)
    assert not file.exists()


def test_translations_are_written_after_their_record(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the record, the same command would take them for the user's."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    evaluate = ("evaluate", str(trained), "--data", "grammar", "--limit", "3", "--beams", "1", "--out", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(hc.Record, "save", full)
        assert run(*evaluate).exit_code
    assert not (tmp_path / "translations.txt").exists()
    assert run(*evaluate).exit_code == 0
    assert (tmp_path / "translations.txt").is_file()


def test_translate_reads_stdin_line_by_line(trained: Path, tmp_path: Path) -> None:
    sentences = list(laboratory.parallel()["test"]["source"])[:3]
    text = f"{sentences[0]}\n\n{sentences[1]}\n{sentences[2]}"
    done = run("translate", str(trained), "--beams", "2", input=text)
    lines = done.stdout.splitlines()
    assert done.exit_code == 0, done.output
    assert len(lines) == 4
    assert lines[1] == ""
    (tmp_path / "in.txt").write_text(text + "\n")
    assert run("translate", str(trained), str(tmp_path / "in.txt"), "--beams", "2").stdout == done.stdout
    assert run("translate", str(trained), input="").stdout == ""
    (tmp_path / "latin.txt").write_bytes("der König\n".encode("latin-1"))
    refused = run("translate", str(trained), str(tmp_path / "latin.txt"))
    assert refused.exit_code == 2
    assert "latin.txt is not UTF-8 text" in refused.output


def test_a_byte_order_mark_is_not_part_of_the_first_sentence(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.studies.evaluation.translate", lambda *given, **_: given[-1])
    (tmp_path / "marked.txt").write_bytes(codecs.BOM_UTF8 + b"The dog sees.\nThe dog sees.\n")
    for file in (str(tmp_path / "marked.txt"), "-"):
        done = run("translate", str(trained), file, input=(tmp_path / "marked.txt").read_bytes())
        assert done.stdout == "The dog sees.\nThe dog sees.\n"


def test_a_carriage_return_within_a_line_ends_no_sentence(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Translations stood beside other sources; evaluate reads the line as one text."""
    batches: list[list[str]] = []
    monkeypatch.setattr("headcount.studies.evaluation.translate", lambda *inputs, **_: batches.append(inputs[-1]) or [])
    source = tmp_path / "source.txt"
    source.write_bytes("one\rtwo\nthree\r\n\n\u2028four\x0bfive\x85".encode())
    for file in (str(source), "-"):
        assert run("translate", str(trained), file, input=source.read_bytes()).exit_code == 0
    assert batches == [["one\rtwo", "three", "", "\u2028four\x0bfive\x85"]] * 2
    source.write_bytes(b"one\rtwo\rthree\r")
    refused = run("translate", str(trained), str(source))
    assert refused.exit_code != 0
    assert "its lines end in carriage returns (CR)" in " ".join(refused.output.split())


def test_a_translation_with_line_breaks_is_one_line(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all later translations stood beside other sources."""
    breaks = "a\nb\r\nc\rd\u2028e\x85f\x0bg"

    def decoded(self: Any, rows: Any, **_: Any) -> list[str]:
        return [breaks for _ in rows]

    monkeypatch.setattr("transformers.PreTrainedTokenizerBase.batch_decode", decoded)
    done = run("translate", str(trained), "--beams", "1", input="The dog sees.\n\nThe dog sees.\n")
    assert done.stdout == "a b c d e f g\n\na b c d e f g\n"
    out = tmp_path / "out"
    assert not run("evaluate", str(trained), "--data", "grammar", "--limit", "3", "--out", str(out)).exit_code
    assert (out / "translations.txt").read_bytes() == b"a b c d e f g\n" * 3
    assert set(hc.Record.load(out / "record.json").parts.translations) == {breaks}


def test_a_sentence_longer_than_the_model_is_cut_with_a_warning(trained: Path) -> None:
    with pytest.warns(UserWarning, match="1 text reaches 512 tokens"):
        done = run("translate", str(trained), "--beams", "1", input="The dog sees.\n" + "the dog " * 600 + "\n")
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 2


def test_score_on_parallel_text(trained: Path, data: Path) -> None:
    done = run("score", str(trained), "--task", "translation", "--data", str(data), "--languages", "en,xx")
    assert done.exit_code == 0, done.output
    assert "encoder.2" in done.output


def test_relevance_and_its_rules(trained: Path, data: Path, tmp_path: Path) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "2"]
    options = ["--rule", "zplus2019", "--target", "reference", "--chunk", "30"]
    done = run("score", str(trained), *given, "--method", "relevance", *options, "--out", str(tmp_path / "score"))
    assert done.exit_code == 0, done.output
    assert "constants absorbed 0%" in done.output
    record = hc.Record.load(tmp_path / "score" / "record.json")
    assert record.signature.arguments["rule"] == "zplus2019"
    assert record.parts.conservation.cuts["input"].arriving == pytest.approx(1, abs=1e-4)
    done = run("study", "rules", str(trained), *given, "--target", "reference", "--out", str(tmp_path / "rules"))
    assert done.exit_code == 0, done.output
    assert "ding / zplus2019" in done.output
    pairs = {str(pair): pair for pair in hc.Record.load(tmp_path / "rules" / "record.json").parts.agreements}
    assert len(pairs) == 15  # six variants
    assert set(pairs["ding / attnlrp"].spearman) == {"all", "encoder", "decoder", "cross"}
    done = run("score", str(trained), *given, "--method", "gradient", "--rule", "ding")
    assert done.exit_code == 2
    assert "no option 'rule'" in done.output
    done = run("score", str(trained), *given, "--method", "relevance", "--rule", "attnlrp", "--bias", "redistribute")
    assert done.exit_code == 2
    assert "Unknown reading of a bias" in done.output


def test_ablate_shows_every_head_and_two_data_sets(trained: Path, data: Path, tmp_path: Path) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "10"]
    done = run("ablate", str(trained), *given, "--other-split", "dev", "--metric", "loss", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    for word in (
        "Change of loss without each head",
        "cross.1",
        "after Holm's correction",
        "The best head of each layer alone",
        "Next: headcount prune",
    ):
        assert word in done.output
    record = hc.Record.load(tmp_path / "record.json")
    assert len(record.parts.one_out) == 28
    assert record.parts.one_out["encoder.0.0"].examples > 0
    assert -1 <= record.parts.other.pearson.r <= 1
    assert set(record.parts.all_but_one_chosen_elsewhere) == set(record.parts.all_but_one)


def test_prune_by_rank_saves_a_smaller_model(trained: Path, data: Path, tmp_path: Path) -> None:
    out, given = (
        tmp_path / "small",
        ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "20"],
    )
    done = run(
        "prune", str(trained), "--choose", "gradient", "--keep", "50%", *given, "--metric", "loss", "--out", str(out)
    )
    assert done.exit_code == 0, done.output
    assert "14 of 28 heads were removed by rank-gradient (verified)" in done.output
    assert "Quality after each step" in done.output
    assert len(hc.locate(hc.load(out)).heads) == 14
    record = hc.Record.load(out / "record.json")
    assert [point.removed for point in record.parts.curve] == [0, 3, 6, 8, 11, 14]
    assert record.signature.model == str(trained)
    assert run("translate", str(out), input="The dog sees.\n").exit_code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--keep", "101%"], "between 0% and 100%; got '101%'"),
        (["--keep", "many"], "expected a number or a percentage"),
        (["--keep", "500"], "only 28"),
        (["--keep", "5", "--step", "0%"], "above 0"),
        (["--keep", "5", "--step", "1"], "'1' may be meant as a number of heads; give a percentage"),
        (["--keep", "5", "--kinds", "vision"], "no vision heads"),
        (["--keep", "5", "--metric", "accuracy"], "metric of translation"),
        ([], "needs one budget (--keep)"),
    ],
)
def test_prune_by_rank_with_wrong_input(
    trained: Path, data: Path, tmp_path: Path, change: list[str], message: str
) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "5"]
    done = run("prune", str(trained), "--choose", "gradient", *given, "--out", str(tmp_path / "o"), *change)
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (["--languages", "en,fr"], 1, "has no counterpart"),
        (["--data", "/no/such/folder"], 1, "There is no /no/such/folder"),
        (["--data", "grammar:german"], 2, "Unknown language of the grammar 'german'"),
        (["--heads", "5"], 2, "multiple of twice the number of heads"),
        (["--preset", "huge"], 2, "tiny"),
        (["--cooldown", "500"], 2, "cooldown must be from 0 to steps"),
        (["--dropout", "1.5"], 2, "1.5"),
        (["--vocabulary", "20"], 1, "different characters"),
        (["--like", "pruned", "--shared"], 2, "--like is for translation"),
        (["--seeds", "0-2", "--seed", "1"], 2, "--seed does nothing with --seeds"),
        (["--seeds", "2-0"], 2, "numbers such as"),
        (["--seeds", "1,1"], 2, "different whole numbers"),
        (["--watch", "accuracy"], 2, "watch (--watch) must be one of loss, bleu"),
        (["--factor", "2", "--rate", "0.001"], 2, "give only one of them"),
    ],
)
def test_train_with_wrong_input(data: Path, tmp_path: Path, change: list[str], status: int, message: str) -> None:
    out = tmp_path / "out"
    given = ["--data", str(data), "--languages", "en,xx", *SMALL.split(), "--out", str(out), *change]
    done = run("train", *given)
    assert done.exit_code == status, done.output
    assert message in done.output.replace("\n", " ")
    assert not (out / "config.json").exists()


def test_the_next_command_compares_without_case_what_was_trained_without_it(data: Path, tmp_path: Path) -> None:
    given = ["--data", str(data), "--languages", "en,xx", *SMALL.split(), "--steps", "1", "--cooldown", "0"]
    done = run("train", *given, "--lowercase", "--seeds", "3", "--out", str(tmp_path / "m"))
    assert done.exit_code == 0, done.output
    assert "--languages en,xx --lowercase --out DIR" in done.output
    done = run("train", *given, "--lowercase", "--seed", "3", "--out", str(tmp_path / "m-3"))
    assert f"Next: headcount evaluate {tmp_path / 'm-3'} --data {data} --languages en,xx --lowercase" in done.output


def test_a_model_like_a_post_norm_one_is_trained_as_those_are(data: Path, tmp_path: Path) -> None:
    """The control differs from the model in its heads, not in the rate, the clipping and the schedule."""
    given = ["--data", str(data), "--languages", "en,xx", "--preset", "tiny", "--steps", "1", "--seed", "0"]
    sized = ["--norm", "post", "--width", "32", "--inner", "32", "--encoder-layers", "1", "--vocabulary", "200"]
    model, pruned, again = (str(tmp_path / name) for name in ("model", "pruned", "again"))
    assert run("train", *given, *sized, "--out", model).exit_code == 0
    assert run("prune", model, "--remove", "encoder.0.1", "--out", pruned).exit_code == 0
    done = run("train", *given, "--like", pruned, "--out", again)
    assert done.exit_code == 0, done.output
    recipes = [hc.Record.load(Path(folder) / "record.json").signature.arguments["recipe"] for folder in (model, again)]
    assert recipes[0] == recipes[1]
    assert recipes[0]["rate"] is None


def test_unknown_split(trained: Path, data: Path) -> None:
    done = run("evaluate", str(trained), "--data", str(data), "--languages", "en,xx", "--split", "tests")
    assert done.exit_code == 2
    assert "Did you mean 'test'" in done.output


@pytest.mark.parametrize("command", [["translate"], ["evaluate", "--data", "grammar"]])
def test_a_model_that_is_not_there(command: list[str], tmp_path: Path) -> None:
    missing = run(command[0], "/no/such/model", *command[1:], input="A dog.")
    assert missing.exit_code == 1
    assert "There is no folder /no/such/model" in missing.output
    (tmp_path / "notes.txt").write_text("no model")
    assert "is a file" in run(command[0], str(tmp_path / "notes.txt"), *command[1:], input="A dog.").output


def test_prune_with_compensation(trained: Path, data: Path, tmp_path: Path) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "12", "--metric", "loss"]
    named = ["prune", str(trained), "--remove", "encoder.0.1,cross.1.*", "--compensate", "lstsq"]
    done = run(*named, *given[:-2], "--out", str(tmp_path / "named"))
    assert done.exit_code == 0, done.output
    assert "explained without" in done.output
    record = hc.Record.load(tmp_path / "named" / "record.json")
    assert record.parts.compensation.method == "lstsq"
    assert set(record.parts.compensation.sites) == {"encoder.0", "cross.1"}
    assert hc.load(tmp_path / "named")
    for method, options in (("greedy", ["--candidates", "2", "--group", "2"]), ("fisher", ["--compensate", "scale"])):
        out = tmp_path / method
        done = run(
            "prune", str(trained), "--choose", method, "--keep", "24", *options, *given, "--calibrate-split", "train",
            "--out", str(out),
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        assert "4 of 28 heads were removed by" in done.output
        assert len(hc.locate(hc.load(out)).heads) == 24
    small = run(
        "prune", str(trained), "--choose", "gradient", "--keep", "95%params", *given, "--out", str(tmp_path / "p")
    )
    assert small.exit_code == 0, small.output
    parameters = hc.Record.load(tmp_path / "p" / "record.json").parts.cost
    assert parameters.after.parameters <= 0.95 * parameters.before.parameters


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--remove", "encoder.0.1", "--compensate", "lstsq"], "needs --task and --data"),
        (["--choose", "fisher", "--keep", "5", "--group", "3"], "--group is not an option of --choose fisher"),
        (["--choose", "gradient", "--keep", "1%params"], "still costs"),
        (["--choose", "gradient", "--keep", "5apples"], "not a budget"),
    ],
)
def test_prune_with_compensation_and_wrong_input(
    trained: Path, data: Path, tmp_path: Path, change: list[str], message: str
) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "5"]
    done = run("prune", str(trained), *change, *(given if "--choose" in change else []), "--out", str(tmp_path / "o"))
    assert done.exit_code == 2, done.output
    assert message in done.output


def test_study_of_compensation(trained: Path, data: Path, tmp_path: Path) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "10", "--metric", "loss"]
    asked = ["--calibrate-limit", "12", "--step", "20", "--most", "40", "--candidates", "1", "--group", "6"]
    done = run(
        "study",
        "compensation",
        str(trained),
        *given,
        *asked,
        "--points",
        "0.0",
        "--out",
        str(tmp_path),
        "--format",
        "svg",
    )
    assert done.exit_code == 0, done.output
    record = hc.Record.load(tmp_path / "record.json")
    assert set(record.parts.compensations) == {"none", "bias", "scale", "lstsq", "greedy"}
    for points in record.parts.compensations.values():
        assert [point.removed for point in points] == [6, 11]
        assert all(point.low <= point.value <= point.high for point in points)
    assert (tmp_path / "figures" / "compensation.svg").is_file()
    same = run("study", "compensation", str(trained), *given, *asked, "--split", "test", "--calibrate-limit", "10")
    assert same.exit_code == 0, same.output
    assert "held out" in same.output.splitlines()[0], "of one split, each gets half of the texts"


LEARN = ["--steps", "6", "--tune", "2", "--batch", "300", "--rate", "0.001"]


def test_prune_by_learning_saves_a_smaller_model_and_goes_on(trained: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--metric", "loss", *LEARN]
    asked = ["prune", str(trained), "--choose", "l0", "--keep", "encoder=5", *given, "--out", str(out)]
    done = run(*asked)
    assert done.exit_code == 0, done.output
    for words in ("7 of 28 heads were removed by l0", "Trained: encoder", "6 + 2 steps.", "settled", "after tuning"):
        assert words in done.output.replace("\n", " ")
    assert [site.num_heads for site in hc.locate(hc.load(out)) if site.kind != "encoder"] == [4, 4, 4, 4]
    assert run("translate", str(out), input="The dog sees.\n").exit_code == 0
    before = (out / "model.safetensors").stat().st_mtime_ns
    assert run(*asked).exit_code == 0
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    other = run(*asked, "--seed", "4")
    assert other.exit_code == 2
    assert "other settings" in other.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--choose", "l0", "--keep", "encoder=50"], "only 12"),
        (["--choose", "l0", "--keep", "encoder=1,encoder=2"], "each kind once"),
        (["--choose", "l0", "--keep", "5", "--recompute"], "--recompute is not an option of --choose l0"),
        (["--choose", "greedy", "--keep", "5", "--distill", "0.5"], "give --tune STEPS too"),
        (["--choose", "l0", "--keep", "5", "--compensate", "lstsq"], "trains the weights"),
        (["--choose", "gradient", "--keep", "5", "--seed", "1"], "--seed has an effect only with"),
        (["--choose", "gradeint", "--keep", "5"], "Did you mean 'gradient'"),
        (["--choose", "gradient", "--keep", "5", "--penalty", "1"], "not an option of --choose gradient"),
        (["--choose", "l0", "--penalty", "much"], "expected numbers"),
        (["--choose", "l0"], "a budget (--keep)"),
        (["--choose", "subset", "--penalty", "1"], "not an option of --choose subset"),
        (["--choose", "l0", "--keep", "5", "--overwrite"], "--overwrite cannot be used when training"),
        (["--choose", "l0", "--keep", "5", "--steps", "0"], "at least 1 step; got steps=0"),
        (["--choose", "subset", "--keep", "5", "--annealed", "0"], "0.0<x"),
    ],
)
def test_prune_by_learning_with_wrong_input(
    trained: Path, data: Path, tmp_path: Path, change: list[str], message: str
) -> None:
    given = ["--task", "translation", "--data", str(data), "--languages", "en,xx", "--limit", "5"]
    done = run("prune", str(trained), *given, "--out", str(tmp_path / "o"), *change)
    assert done.exit_code == 2, done.output
    assert message in done.output
