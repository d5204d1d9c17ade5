"""Commands that measure: fine-tuning, ablation, curves, dynamics, speed and figures, as a user meets them."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from transformers import BertConfig, BertForSequenceClassification, BertModel, GPT2Config, GPT2LMHeadModel

import headcount as hc
from headcount.cli.commands.prune import _folders
from headcount.cli.main import main
from headcount.corpora.examples import example_hash, in_first_half
from headcount.errors import UsageError
from headcount.report.sections.curves import share_to_try
from headcount.studies.specialisation import ModelWithData
from tokens import sentences, word_tokenizer

pytestmark = pytest.mark.usefixtures("unverified")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder without a classifier, and labelled text in a folder."""
    folder = tmp_path_factory.mktemp("place")
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=99, **size)).save_pretrained(folder / "encoder")
    word_tokenizer().save_pretrained(folder / "encoder")
    (folder / "data").mkdir()
    for split, count in (("train", 60), ("dev", 20), ("test", 20)):
        rows = [f"{'good' if 'w1' in text else 'bad'}\t{text}" for text in sentences(count, seed=len(split))]
        (folder / "data" / f"{split}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    return folder


@pytest.fixture(scope="module")
def tuned(place: Path) -> str:
    out = str(place / "tuned")
    done = run(
        "train", str(place / "encoder"), "--task", "classification", "--data", str(place / "data"),
        "--epochs", "3", "--batch", "80", "--rate", "1e-3", "--out", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.output
    return out


def work(place: Path) -> list[str]:
    return ["--task", "classification", "--data", str(place / "data")]


def test_a_fine_tuned_model_knows_its_classes(tuned: str) -> None:
    assert hc.load(tuned).config.id2label == {0: "bad", 1: "good"}
    assert (Path(tuned) / "tokenizer.json").is_file()


def test_steps_are_not_cut_by_the_default_number_of_epochs(place: Path, tmp_path: Path) -> None:
    """`--steps 300` stopped after two epochs without a word."""
    settings = ["--steps", "40", "--batch", "80", "--out", str(tmp_path / "out")]
    done = run("train", str(place / "encoder"), *work(place), *settings)
    assert done.exit_code == 0, done.output
    assert hc.Record.load(tmp_path / "out" / "record.json").parts.steps == 40


def test_a_checkpoint_of_half_precision_is_fine_tuned_in_full(tuned: str, place: Path, tmp_path: Path) -> None:
    half = hc.load(tuned, dtype="float16")
    hc.save(half, tmp_path / "half", tokenizer=word_tokenizer())
    rate = ["--rate", "1e-5", "--epochs", "1"]
    done = run("train", str(tmp_path / "half"), *work(place), *rate, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    model, before = hc.load(tmp_path / "out"), half.float().state_dict()
    assert model.dtype == torch.float32
    assert max(float((value - before[name]).abs().max()) for name, value in model.state_dict().items()) < 1e-3


def test_fine_tuning_needs_a_start(place: Path, tmp_path: Path) -> None:
    done = run("train", *work(place), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "needs a MODEL" in done.output
    done = run("train", "x", "--data", "grammar", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_ablate_writes_its_figures(tuned: str, place: Path, tmp_path: Path) -> None:
    done = run("ablate", tuned, *work(place), "--other-split", "dev", "--format", "svg", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    figures = {file.name for file in (tmp_path / "figures").iterdir()}
    assert {"ablation-map.svg", "ablation-map.csv", "transfer.svg"} <= figures
    assert not (tmp_path / "unfinished").exists()


def test_ablate_early(tuned: str, place: Path) -> None:
    done = run("ablate", tuned, *work(place), "--early", "--no-alone", "--json")
    record = json.loads(done.stdout)
    assert record["signature"]["arguments"]["early"] is True
    assert all(0 < effect["examples"] <= 20 for effect in record["parts"]["one_out"].values())


def test_curves(tuned: str, place: Path, tmp_path: Path) -> None:
    done = run(
        "study", "curves", tuned, *work(place), "--measure-split", "test", "--orders", "gradient,magnitude",
        "--random", "2", "--step", "25", "--format", "png", "--out", str(tmp_path),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "magnitude" in done.output
    assert "Orders compared on the same examples" in done.output
    assert "random (mean)" in done.output
    assert (tmp_path / "figures" / "pruning-curves.png").is_file()
    tried = share_to_try(hc.Record.load(tmp_path / "record.json").parts, "gradient")
    assert f"--choose gradient --keep {100 - 100 * tried:.0f}%" in " ".join(done.output.split())


def test_agreement(tuned: str, place: Path, tmp_path: Path) -> None:
    done = run(
        "study", "agreement", tuned, *work(place), "--measure-split", "test", "--methods",
        "attribution-patching,magnitude", "--out", str(tmp_path),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Scores against ablation" in done.output
    assert "Change of accuracy as the lowest heads of each score are removed" in done.output
    assert set(hc.Record.load(tmp_path / "record.json").parts.pruning) == {
        "ablation", "attribution-patching", "magnitude",
    }  # fmt: skip


@pytest.fixture(scope="module")
def flattered(place: Path) -> Path:
    """A classifier that is right on every text of dev.tsv and of the first half of all.tsv, and wrong on all others."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    torch.manual_seed(0)
    model, tokenizer = BertForSequenceClassification(BertConfig(vocab_size=99, **size)).eval(), word_tokenizer()
    hc.save(model, place / "flattered", tokenizer=tokenizer)
    (place / "flattering").mkdir()
    for name, seed in (("dev", 1), ("test", 2), ("all", 3)):
        texts = sentences(24, seed=seed)
        with torch.no_grad():
            answers = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits.argmax(-1).tolist()
        right = [name == "dev" or (name == "all" and in_first_half(example_hash(text))) for text in texts]
        labels = [answer if known else 1 - answer for answer, known in zip(answers, right, strict=True)]
        rows = [f"{label}\t{text}" for label, text in zip(labels, texts, strict=True)]
        folder = place if name == "all" else place / "flattering"
        (folder / f"{name}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    return place


def first_value(out: Path) -> float:
    """Of the whole model, by which a reader judges all others."""
    parts = json.loads((out / "record.json").read_text())["parts"]
    return parts["value"] if "value" in parts else parts["curve"][0]["value"]


@pytest.mark.parametrize("command", ["gradient", "fisher", "greedy", "curves"])
def test_what_heads_are_chosen_on_is_not_what_is_measured(flattered: Path, command: str, tmp_path: Path) -> None:
    prune = ["prune", str(flattered / "flattered"), "--choose", command, "--keep", "50%"]
    curves = ["study", "curves", str(flattered / "flattered"), "--orders", "gradient", "--random", "0", "--step", "50"]
    curves += ["--format", "svg"]
    for number, (data, split, value, line) in enumerate([
        ("flattering", [], 0.0, "Measured on 24 texts of test, held out: heads were chosen on 24 texts of dev."),
        ("flattering", ["--measure-split", "dev"], 1.0, "NOT held out: measured on 24 texts of dev"),
        ("all.tsv", [], 0.0, "of the other half of all.tsv, held out: heads were chosen on"),
        ("all.tsv", ["--measure-split", "dev"], None, "NOT held out: measured on 24 texts of all.tsv"),
    ]):  # fmt: skip
        out = tmp_path / str(number)
        asked = ["--task", "classification", "--data", str(flattered / data), *split, "--out", str(out)]
        done = run(*(curves if command == "curves" else prune), *asked)
        assert done.exit_code == 0, done.output
        assert line in done.stdout.splitlines()[0]
        measured = json.loads((out / "record.json").read_text())["parts"]["measured_on"]
        assert measured["held_out"] is (not split)
        assert measured["overlap"] == (24 if split else 0)
        assert value is None or first_value(out) == value


def test_calibration_keeps_off_what_is_measured(flattered: Path, tmp_path: Path) -> None:
    """Of a file the held-out half is never calibrated on; of a folder a split that is both is told."""
    given = ["prune", str(flattered / "flattered"), "--choose", "gradient", "--keep", "50%", "--compensate", "lstsq"]
    for data, split, held_out in (("all.tsv", "train", True), ("flattering", "test", False)):
        out = tmp_path / data
        asked = ["--task", "classification", "--data", str(flattered / data), "--calibrate-split", split]
        done = run(*given, *asked, "--out", str(out))
        assert done.exit_code == 0, done.output
        assert json.loads((out / "record.json").read_text())["parts"]["measured_on"]["held_out"] is held_out
        assert done.stdout.startswith("Measured on" if held_out else "NOT held out")


def test_dynamics(tuned: str, place: Path) -> None:
    done = run("study", "dynamics", tuned, *work(place), "--epochs", "1,3", "--step", "50")
    assert done.exit_code == 0, done.output
    assert "With 50% of the heads masked, the model of epoch 1 keeps" in done.output.replace("\n", " ")
    for epochs, message in (("1,9", "no epoch 9"), ("one", "numbers such as")):
        wrong = run("study", "dynamics", tuned, *work(place), "--epochs", epochs)
        assert wrong.exit_code == 2
        assert message in wrong.output


def test_bench(tuned: str, place: Path, tmp_path: Path) -> None:
    small = str(tmp_path / "small")
    assert run("prune", tuned, "--remove", "encoder.0.*", "--out", small).exit_code == 0
    done = run("bench", tuned, small, "--batches", "1,2", "--lengths", "8", "--repeats", "2", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "of 2 settings" in done.output
    assert (tmp_path / "figures" / "speed.pdf").is_file()
    assert run("bench", tuned, "--batches", "many").exit_code == 2


def test_bench_says_whether_heads_were_chosen_on_its_texts(tuned: str, place: Path, tmp_path: Path) -> None:
    small = str(tmp_path / "small")
    pruned = run(
        "prune", tuned, *work(place), "--choose", "gradient", "--keep", "50%", "--split", "dev", "--out", small
    )
    assert pruned.exit_code == 0, pruned.output
    few = [*work(place), "--batches", "1", "--lengths", "8", "--repeats", "1"]
    done = run("bench", tuned, small, *few, "--split", "dev")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("NOT held out")
    parts = json.loads(run("bench", tuned, small, *few, "--split", "test", "--json").stdout)["parts"]
    assert parts["measured_on"]["held_out"] is True
    itself = parts["quality"][tuned]
    assert [itself[name] for name in ("difference", "difference_low", "difference_high")] == [0, 0, 0]


def test_ablate_says_whether_heads_were_chosen_on_its_texts(tuned: str, place: Path, tmp_path: Path) -> None:
    small = str(tmp_path / "small")
    pruned = run(
        "prune", tuned, *work(place), "--choose", "gradient", "--keep", "50%", "--split", "dev", "--out", small
    )
    assert pruned.exit_code == 0, pruned.output
    done = run("ablate", small, *work(place), "--split", "dev", "--no-alone")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("NOT held out")
    parts = json.loads(run("ablate", small, *work(place), "--split", "test", "--no-alone", "--json").stdout)["parts"]
    assert parts["measured_on"]["held_out"] is True
    assert "held out" not in run("ablate", tuned, *work(place), "--no-alone").stdout


def test_bench_says_that_an_export_does_not_know_what_its_heads_were_chosen_on(
    tuned: str, place: Path, tmp_path: Path
) -> None:
    hc.export(tuned, "onnx", tmp_path / "half.onnx", check=False)
    few = [*work(place), "--batches", "1", "--lengths", "8", "--repeats", "1"]
    done = run("bench", tuned, str(tmp_path / "half.onnx"), *few)
    assert done.exit_code == 0, done.output
    assert "Whether heads were chosen on the same examples is unknown." in done.stdout.splitlines()[0]


def test_bench_measures_quality_only_of_models_that_read_the_data_alike(
    tuned: str, place: Path, tmp_path: Path
) -> None:
    """Class 0 of one model is class 1 of the other: by the numbers of the first, the second would be wrong."""
    few = [*work(place), "--batches", "1", "--lengths", "8", "--repeats", "1", "--json"]
    shutil.copytree(tuned, tmp_path / "same")
    quality = json.loads(run("bench", tuned, str(tmp_path / "same"), *few).stdout)["parts"]["quality"]
    assert len({part["value"] for part in quality.values()}) == 1
    turned = Path(shutil.copytree(tuned, tmp_path / "turned")) / "config.json"
    names = {"id2label": {"0": "good", "1": "bad"}, "label2id": {"good": 0, "bad": 1}}
    turned.write_text(json.dumps(json.loads(turned.read_text()) | names))
    refused = run("bench", tuned, str(turned.parent), *few)
    assert refused.exit_code == 2
    assert "reads the data in another way" in refused.output


def test_scores_by_presets_and_unknown_studies(tuned: str, place: Path) -> None:
    done = run("score", tuned, *work(place), "--preset", "michel2019-code", "--json")
    assert json.loads(done.stdout)["signature"]["arguments"]["granularity"] == "token"
    assert run("score", tuned, *work(place), "--preset", "nobody").exit_code == 2
    wrong = run("study", "curve")
    assert wrong.exit_code == 2
    assert "curves" in wrong.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "bleu"], "accuracy"),
        (["--data", "nowhere.tsv"], "no file"),
        (["--text-column", "body"], "no column 'body'"),
    ],
)
def test_wrong_input_is_said(tuned: str, place: Path, arguments: list[str], message: str) -> None:
    done = run("ablate", tuned, *work(place), *arguments)
    assert done.exit_code in (1, 2)
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("0%", "no heads would be left"),
        ("0", "no heads would be left"),
        ("101%", "between 0% and 100%; got '101%'"),
        ("99", "only 8"),
        ("x", "not a budget"),
    ],
)
def test_budgets_that_make_no_sense(tuned: str, place: Path, tmp_path: Path, keep: str, message: str) -> None:
    done = run("prune", tuned, "--choose", "gradient", "--keep", keep, *work(place), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2, done.output
    assert message in done.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_whole_studies(tuned: str, place: Path, tmp_path: Path) -> None:
    shown = run("study", "michel2019", tuned, "--data", str(place / "data"), "--show")
    assert 'split = "dev"' in shown.output
    config = tmp_path / "study.toml"
    config.write_text(
        f"{shown.output.replace('translation', 'classification')}".replace("random = 5", "random = 1")
        .replace("repeats = 7", "repeats = 1")
        .replace("[1, 4, 16, 64]", "[1]")
        .replace("[32, 128]", "[8]")
    )
    done = run("study", "michel2019", "--config", str(config), "--format", "svg", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert {path.stem for path in (tmp_path / "out" / "parts").iterdir()} == {
        "gradient", "ablation", "replacement", "curves", "dynamics", "speed", "ledger",
    }  # fmt: skip
    assert "9 claims of the papers: here" in done.output
    lines = done.stdout.splitlines()
    assert lines[-1].endswith(f"report: headcount report {tmp_path / 'out'} --out report.html")
    assert not any("parts/" in line for line in lines), "the ledger, then one line that names the files"
    assert (tmp_path / "out" / "figures" / "dynamics" / "dynamics.svg").is_file()
    config.write_text("model = ")
    assert "is not TOML" in run("study", "all", "--config", str(config)).output
    config.write_text('source = "grammar"')
    assert "source must be a table" in run("study", "all", "--config", str(config)).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--choose", "fisher", "--keep", "encoder=4,cross=50%"], "needs one budget (--keep)"),
        (["--choose", "gradient", "--keep", "encoder=4", "--kinds", "decoder"], "give only one of the two options"),
    ],
)
def test_options_that_contradict_each_other(
    tuned: str, place: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run("prune", tuned, *arguments, *work(place), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2, done.output
    assert message in done.output.replace("\n", " ")


def test_a_mistake_does_not_occupy_a_folder(tuned: str, place: Path, tmp_path: Path) -> None:
    learn = [
        "prune",
        tuned,
        "--choose",
        "l0",
        *work(place),
        "--steps",
        "2",
        "--tune",
        "0",
        "--out",
        str(tmp_path / "out"),
    ]
    assert run(*learn, "--keep", "1000").exit_code == 2
    done = run(*learn, "--keep", "4")
    assert done.exit_code == 0, done.output
    assert len(hc.locate(hc.load(tmp_path / "out")).heads) == 4


def test_one_file_is_not_trained_and_measured_on(tuned: str, place: Path, tmp_path: Path) -> None:
    file = ["--task", "classification", "--data", str(place / "data" / "train.tsv")]
    short = ["--keep", "4", "--steps", "1", "--tune", "1", *file]
    learn = ["prune", tuned, "--choose", "l0", *short, "--out", str(tmp_path / "learned")]
    study = ["study", "tradeoff", tuned, "--ways", "l0", "--against", "l0", "--no-roles", *short]
    for command in (learn, [*study, "--out", str(tmp_path / "study")]):
        done = run(*command)
        assert done.exit_code == 0, done.output
        assert "of the other half of train.tsv, held out" in done.output.replace("\n", " ")
    done = run("train", str(place / "encoder"), *file, "--out", str(tmp_path / "out"))
    assert done.exit_code == 2, done.output
    assert "is also in the training data" in done.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_options_that_would_do_nothing_are_refused(tuned: str, tmp_path: Path) -> None:
    done = run("prune", tuned, "--keep", "encoder.0.*", "--step", "5%", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "--step goes with --choose" in done.output


def test_named_heads_must_have_the_shape_asked_for(tuned: str, tmp_path: Path) -> None:
    done = run("prune", tuned, "--remove", "encoder.0.1", "--rule", "uniform", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "the same number in every layer" in done.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_values_that_agree_in_six_digits_have_folders_of_their_own() -> None:
    assert _folders([0.1, 0.02]) == {0.1: "0.1", 0.02: "0.02"}
    assert _folders([0.1, 0.10000001, 3.0]) == {0.1: "0.1", 0.10000001: "0.10000001", 3.0: "3"}


def test_training_refuses_what_would_do_nothing(place: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    tuning = ["train", str(place / "encoder"), "--task", "classification", "--data", str(place / "data")]
    for arguments, option in (
        ([*tuning, "--preset", "tiny"], "--preset"),
        ([*tuning, "--width", "8"], "--width"),
        (["train", "--data", "grammar", "--text-column", "body"], "--text-column"),
        (["train", "--data", "grammar", "--dev-split", "test"], "--dev-split"),
    ):
        done = run(*arguments, *out)
        assert done.exit_code == 2
        assert f"{option} does nothing with --task" in done.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_the_same_command_gives_the_same_classifier(place: Path, tmp_path: Path) -> None:
    tuning = ["train", str(place / "encoder"), "--task", "classification", "--data", str(place / "data")]
    weights = []
    for name in ("one", "two"):
        assert run(*tuning, "--epochs", "1", "--batch", "80", "--out", str(tmp_path / name)).exit_code == 0
        weights.append(hc.load(tmp_path / name).classifier.weight)
    assert torch.equal(*weights)


def test_tradeoff(tuned: str, place: Path, tmp_path: Path) -> None:
    asked = ["study", "tradeoff", tuned, *work(place), "--keep", "4,2", "--steps", "1", "--tune", "1"]
    ways = "rank-gradient/untuned,rank-gradient+lstsq,random"
    done = run(*asked, "--ways", ways, "--format", "png", "--against", "random", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "rank-gradient+lstsq" in done.output
    assert "functions" in done.output
    figures = {file.name for file in (tmp_path / "figures").glob("*.png")}
    assert figures == {"kept-by-kind.png", "kept-by-layer.png", "kept-roles.png", "tradeoff.png", "tradeoff-time.png"}
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["parts"]["looked"]["sentences"] == 20
    assert {point["steps"] for point in record["parts"]["points"]} == {0, 2}
    blind = run(*asked, "--ways", "random/untuned", "--no-roles")
    assert blind.exit_code == 0, blind.output
    assert "not asked for (--no-roles)" in " ".join(blind.output.split())


def test_sizes_of_a_trade_off_may_be_shares(tuned: str, place: Path, tmp_path: Path) -> None:
    asked = ["study", "tradeoff", tuned, *work(place), "--ways", "random/untuned", "--no-roles", "--format", "png"]
    assert run(*asked, "--keep", "75%,50%,4", "--out", str(tmp_path)).exit_code == 0
    points = json.loads((tmp_path / "record.json").read_text())["parts"]["points"]
    total = len(hc.locate(hc.load(tuned, task="classification")).heads)
    assert {point["keep"] for point in points} == {3 * total // 4, total // 2, 4}
    refused = run(*asked, "--keep", "50%params")
    assert refused.exit_code == 2
    assert "keeps numbers or shares of heads" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep", "4", "--ways", "rank-gradientt"], "rank-gradientt"),
        (["--keep", "4", "--ways", "l0,l0"], "ways repeats a value"),
        (["--keep", "4", "--seeds", "0,0"], "seeds repeats a value"),
        (["--keep", "0"], "--keep 0: a trade-off keeps at least 1 head"),
        (["--keep", "4,0%"], "--keep 0%: a trade-off keeps at least 1 head"),
        (["--keep", "12,12"], "--keep repeats a value: 12, 12. Give each value once."),
        (["--keep", "35%,35.0%"], "--keep repeats a value: 35%, 35%. Give each value once."),
    ],
)
def test_a_plan_that_cannot_be_is_refused_before_a_model_is_loaded(arguments: list[str], message: str) -> None:
    task = ["--task", "classification", "--data", "nowhere/data"]
    done = run("study", "tradeoff", "nowhere/model", *task, *arguments)
    assert done.exit_code in (1, 2)
    assert message in " ".join(done.output.split())


def test_a_share_of_no_head_is_named(tuned: str, place: Path) -> None:
    total = len(hc.locate(hc.load(tuned, task="classification")).heads)
    done = run("study", "tradeoff", tuned, *work(place), "--ways", "random/untuned", "--no-roles", "--keep", "4,1%")
    assert done.exit_code == 2
    expected = f"--keep 1%: of {total} heads this is none; a trade-off keeps at least 1 head, such as --keep 1."
    assert expected in " ".join(done.output.split())


def test_a_finished_trade_off_is_not_measured_again(
    tuned: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other formats are drawn from its record. Its models were replaced by those of other settings."""
    asked = ["study", "tradeoff", tuned, *work(place), "--keep", "4", "--ways", "random/untuned", "--no-roles"]
    asked += ["--save-models", "--out", str(tmp_path), "--format"]
    assert run(*asked, "png").exit_code == 0
    before = json.loads((tmp_path / "record.json").read_text())
    with monkeypatch.context() as patch:
        patch.setattr("headcount.studies.point.run", None)
        again = run(*asked, "svg")
        assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "record.json").read_text()) == before
    assert (tmp_path / "figures" / "tradeoff.svg").is_file()
    other = run(*asked, "png", "--seeds", "0,1")
    assert other.exit_code == 1
    assert "has the models of a finished trade-off with other settings or data" in " ".join(other.output.split())
    (model,) = (tmp_path / "models").iterdir()
    model.rename(tmp_path / "elsewhere")
    assert run(*asked, "png").exit_code == 0
    assert (model / "config.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ways", "rank-gradient+glue"], "no compensation 'glue'"),
        (["--ways", "l0,l0"], "ways repeats a value"),
        (["--against", "nobody"], "--against nobody is not one of --ways (l0, subset, rank-gradient, random)"),
        (["--ways", "nobody"], "Unknown way of pruning 'nobody'"),
        (["--distill", "0.7"], "--distill is for ways with /distilled, and --ways has none"),
        (["--distill", "0", "--ways", "l0/distilled"], "--distill"),
        (["--no-roles", "--trees", "bank.conllu"], "--trees is used only to find roles"),
        (["--trees", "nowhere.conllu"], "nowhere.conllu"),
    ],
)
def test_trade_offs_that_cannot_be(tuned: str, place: Path, arguments: list[str], message: str) -> None:
    done = run("study", "tradeoff", tuned, *work(place), "--keep", "4", *arguments)
    assert done.exit_code in (1, 2)
    assert message in done.output.replace("\n", " ")
    assert "Traceback" not in done.output


def test_every_point_is_a_model_that_the_command_it_names_makes(tuned: str, place: Path, tmp_path: Path) -> None:
    out, ways = tmp_path / "tradeoff", "greedy/distilled,random,scratch"
    asked = [
        "--ways",
        ways,
        "--against",
        "random",
        "--keep",
        "3",
        "--steps",
        "1",
        "--tune",
        "1",
        "--scratch-steps",
        "2",
    ]
    asked += ["--seeds", "1", "--choose-limit", "12", "--no-roles", "--format", "svg", "--max-length", "6"]
    done = run("study", "tradeoff", tuned, *work(place), *asked, "--save-models", "--out", str(out))
    assert done.exit_code == 0, done.output
    points = json.loads((out / "record.json").read_text())["parts"]["points"]
    assert [point["way"] for point in points] == ways.split(",")
    for point in points:
        program, *arguments = shlex.split(point["command"].replace("DIR", str(tmp_path / "again" / point["way"][:6])))
        assert program == "headcount"
        again = run(*arguments)
        assert again.exit_code == 0, again.output
        kept = hc.load(out / "models" / f"{point['way'].replace('/', '.')}-3-1").state_dict()
        made = hc.load(arguments[-1]).state_dict()
        assert kept.keys() == made.keys()
        assert all(torch.equal(kept[name], made[name]) for name in kept), point["command"]


@pytest.mark.parametrize("data", ["file", "folder without test", "folder"])
def test_a_point_and_its_command_read_the_same_texts(tuned: str, place: Path, tmp_path: Path, data: str) -> None:
    texts = shutil.copytree(place / "data", tmp_path / "data")
    if data != "folder":
        (texts / "test.tsv").unlink()
    source = texts / "train.tsv" if data == "file" else texts
    ways = "rank-gradient,greedy,l0,random/untuned,scratch" if data == "folder without test" else "rank-gradient,greedy"
    asked = ["--ways", ways, "--against", "greedy", "--keep", "3", "--steps", "1", "--tune", "1"]
    asked += [
        "--scratch-steps",
        "1",
        "--choose-limit",
        "9",
        "--no-roles",
        "--format",
        "svg",
        "--out",
        str(tmp_path / "out"),
    ]
    done = run("study", "tradeoff", tuned, "--task", "classification", "--data", str(source), *asked)
    assert done.exit_code == 0, done.output
    for point in json.loads((tmp_path / "out" / "record.json").read_text())["parts"]["points"]:
        _, *arguments = shlex.split(point["command"].replace("DIR", str(tmp_path / point["way"])))
        again = run(*arguments)
        assert again.exit_code == 0, again.output
        made = json.loads((tmp_path / point["way"] / "record.json").read_text())["parts"]
        assert (made["heads"], made["quality"]["after"]) == (point["heads"], point["after"])


@pytest.mark.parametrize("choose", [["gradient"], ["random"], ["l0", "--steps", "2"]], ids=lambda choose: choose[0])
def test_a_file_is_halved_however_heads_are_chosen(tuned: str, place: Path, tmp_path: Path, choose: list[str]) -> None:
    file = ["--task", "classification", "--data", str(place / "data" / "train.tsv")]
    how = ["--choose", *choose, "--keep", "4", "--tune", "1"]
    done = run("prune", tuned, *how, *file, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "of the other half of train.tsv, held out" in " ".join(done.output.split())


@pytest.mark.parametrize("trees", [True, False], ids=["treebank", "one held-out split"])
def test_heads_of_roles_are_chosen_and_measured_on_different_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trees: bool
) -> None:
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 99}
    GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained(tmp_path / "model")
    word_tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "data").mkdir()
    for split in ("train", "dev", "test") if trees else ("train", "dev"):
        (tmp_path / "data" / f"{split}.txt").write_text("\n".join(sentences(20, seed=len(split))) + "\n")
    rows = ["1\tw1\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tw2\t_\t_\t_\t_\t0\troot\t_\t_\n"] * 20
    bank = [f"{row}3\tw{number}\t_\t_\t_\t_\t2\tobj\t_\t_\n" for number, row in enumerate(rows)]
    (tmp_path / "bank.conllu").write_text("\n".join(bank) + "\n")
    built: list[ModelWithData] = []

    def build(subjects: dict[str, Callable[[], ModelWithData]], *_: object, **__: object) -> None:
        built.extend(subject() for subject in subjects.values())
        raise UsageError("built")

    monkeypatch.setattr("headcount.studies.specialisation.specialisation", build)
    options = ["--trees", str(tmp_path / "bank.conllu")] if trees else []
    options += ["--task", "language-modelling", "--data", str(tmp_path / "data"), "--kind", "decoder"]
    done = run("study", "specialisation", str(tmp_path / "model"), *options)
    assert "built" in done.output, done.output
    (subject,) = built
    chosen, measured = (
        {getattr(item, "text", item) for item in looking.sentences} for looking in (subject.choose, subject.measure)
    )
    assert chosen.isdisjoint(measured)
    assert len(chosen | measured) == 20
