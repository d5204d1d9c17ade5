"""headcount evaluate on every task: the task is found from the model, quality has an interval."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import zoo
from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.corpora.examples import example_hash, in_first_half
from tokens import sentences, word_tokenizer

TEXTS = sentences(12)
ARCHITECTURES = {
    "classification": "bert",
    "language-modelling": "llama",
    "masked-language-modelling": "roberta",
    "embedding": "xlm-roberta",
}


def run(*arguments: str) -> Result:
    from headcount.cli.main import main

    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for each task, plain and labelled text."""
    place = tmp_path_factory.mktemp("evaluate")
    for task, architecture in ARCHITECTURES.items():
        tokenizer = word_tokenizer(mask="w98", framed=True)
        hc.save(zoo.build(architecture), place / task, tokenizer=tokenizer)
    (place / "plain.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(TEXTS))
    (place / "labelled.tsv").write_text(f"text\tlabel\n{rows}")
    return place


@pytest.mark.parametrize(
    ("task", "options", "metric"),
    [
        ("classification", ["--metric", "matthews"], "Matthews"),
        ("language-modelling", [], "perplexity"),
        ("masked-language-modelling", ["--metric", "accuracy"], "token accuracy"),
    ],
)
def test_the_task_is_found_and_measured(
    folder: Path, tmp_path: Path, task: str, options: list[str], metric: str
) -> None:
    file = folder / ("labelled.tsv" if task == "classification" else "plain.txt")
    done = run("evaluate", str(folder / task), "--data", str(file), "--out", str(tmp_path), *options)
    assert done.exit_code == 0, done.output
    record = hc.Record.load(tmp_path / "record.json")
    assert record.parts.task == task
    quality = record.parts.quality
    value, low, high = quality.value, quality.low, quality.high
    assert quality.metric == metric
    assert low <= value <= high
    assert f"is {value:.4g} (95% {low:.4g} to {high:.4g})" in " ".join(done.output.split())
    assert f"headcount ablate {folder / task} --task {task}" in done.output
    assert len(record.parts.statistics) == record.parts.examples == len(TEXTS)
    if task == "language-modelling":
        assert record.parts.measures["loss"] == pytest.approx(math.log(value))


def test_an_embedding_model_is_compared_with_another(folder: Path, tmp_path: Path) -> None:
    model, plain = str(folder / "embedding"), ["--task", "embedding", "--data", str(folder / "plain.txt")]
    small = str(tmp_path / "small")
    assert run("prune", model, "--remove", "encoder.0.1", "--out", small).exit_code == 0
    refused = run("evaluate", model, *plain)
    assert refused.exit_code == 2
    assert "Give that with --against" in refused.output
    done = run("evaluate", small, *plain, "--against", model, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    record = hc.Record.load(tmp_path / "record.json")
    assert record.parts.measures["cosine distance"] > 1e-6
    assert record.signature.arguments["against"] == model
    assert f"from the embeddings of {model}." in " ".join(done.output.split())


def test_embeddings_of_a_model_with_another_tokenizer_are_no_reference(folder: Path, tmp_path: Path) -> None:
    """It read the tokens of the other: a distance without meaning."""
    model, other = folder / "embedding", tmp_path / "other"
    hc.save(hc.load(model), other, tokenizer=word_tokenizer())
    given = ["--task", "embedding", "--data", str(folder / "plain.txt"), "--against"]
    done = run("evaluate", str(model), *given, str(other))
    assert done.exit_code == 2
    assert f"--against {other} has another tokenizer than {model}" in " ".join(done.output.split())
    hc.save(hc.load(model), tmp_path / "without")
    assert run("evaluate", str(model), *given, str(tmp_path / "without")).exit_code == 0


def test_a_pruned_model_is_told_from_the_texts_its_heads_were_chosen_on(folder: Path, tmp_path: Path) -> None:
    small, other = tmp_path / "small", tmp_path / "other.txt"
    other.write_text("".join(f"{text}\n" for text in sentences(5, seed=9)))
    plain = ["--task", "language-modelling", "--data"]
    choose = ["--choose", "magnitude", "--keep", "50%", "--compensate", "lstsq", "--out", str(small)]
    pruned = run("prune", str(folder / "language-modelling"), *plain, str(folder / "plain.txt"), *choose)
    assert pruned.exit_code == 0, pruned.output
    chosen = sum(in_first_half(example_hash(text)) for text in TEXTS)
    same, apart = (run("evaluate", str(small), "--data", str(data)) for data in (folder / "plain.txt", other))
    assert same.stdout.startswith("NOT all held out: measured on 12 texts of plain.txt")
    assert f"heads were chosen on {chosen} of them" in same.stdout.splitlines()[0]
    assert apart.stdout.startswith("Measured on 5 texts of other.txt, held out: heads were chosen on")
    smaller = str(tmp_path / "smaller")  # its heads are named, those of the model it is made from were chosen
    head = str(hc.locate(hc.load(small)).heads[0])
    assert run("prune", str(small), "--remove", head, "--out", smaller).exit_code == 0
    assert run("evaluate", smaller, "--data", str(folder / "plain.txt")).stdout.startswith("NOT all held out")
    (small / "chosen_on.json").unlink()
    assert "unknown" in run("evaluate", str(small), "--data", str(other)).stdout.splitlines()[0]
    (small / "chosen_on.json").write_text('{"examples": [1]}')
    assert "chosen_on.json is damaged" in run("evaluate", str(small), "--data", str(other)).output


def test_commands_know_what_the_heads_of_a_model_of_the_hub_were_chosen_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`evaluate` said nothing of it, and `prune` of the same model called the texts held out. It has no branch main."""
    plain = ["--task", "language-modelling", "--data", str(folder / "plain.txt")]
    small = tmp_path / "hub" / "models--org--half" / "snapshots" / ("0" * 40)
    choose = ["--choose", "gradient", "--keep", "50%", "--out", str(small)]
    pruned = run("prune", str(folder / "language-modelling"), *plain, *choose)
    assert pruned.exit_code == 0, pruned.output
    (small.parent.parent / "refs").mkdir()
    (small.parent.parent / "refs" / "v2").write_text(small.name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    chosen = read_chosen_on(str(small))
    settings = {
        "evaluate": [], "ablate": [], "bench": ["--repeats", "2", "--lengths", "8"],
        "prune": ["--choose", "magnitude", "--keep", "2"],
        "study agreement": ["--methods", "magnitude"], "study curves": ["--orders", "gradient", "--random", "0"],
        "study compensation": ["--no-greedy"], "study tradeoff": ["--keep", "2", "--ways", "rank-gradient/untuned"],
    }  # fmt: skip
    for command, options in settings.items():
        out = tmp_path / command
        done = run(*command.split(), "org/half", "--revision", "v2", *plain, *options, "--out", str(out))
        assert done.exit_code == 0, done.output
        measured = hc.Record.load(out / "record.json").parts.measured_on
        examples = [part.examples for part in measured.chosen_on]
        assert examples[:1] == [len(chosen[0].example_hashes)], command
        assert len(examples) == 1 + command.startswith("study"), command
    assert read_chosen_on(str(tmp_path / "prune")) == chosen


def test_what_is_wrong_is_said(folder: Path, tmp_path: Path) -> None:
    plain = ["--data", str(folder / "plain.txt")]
    nameless = run("evaluate", str(folder / "embedding"), *plain)
    assert nameless.exit_code == 2
    assert "XLMRobertaModel, does not say what the model does: give --task" in nameless.output.replace("\n", " ")
    idle = run("evaluate", str(folder / "language-modelling"), *plain, "--beams", "2")
    assert "--beams does nothing with --task language-modelling" in idle.output


def test_prune_measures_the_quality_without_named_heads(folder: Path, tmp_path: Path) -> None:
    """On all texts if none is read for anything else, else on those that compensation is not fitted on."""
    given = ["prune", str(folder / "classification"), "--remove", "encoder.0.1", "--task", "classification"]
    data = ["--data", str(folder / "labelled.tsv")]
    done = run(*given, *data, "--out", str(tmp_path / "named"))
    assert done.exit_code == 0, done.output
    record = hc.Record.load(tmp_path / "named" / "record.json")
    quality, change = record.parts.quality, record.parts.change
    assert quality.before.value + change.difference == pytest.approx(quality.after.value)
    assert record.parts.measured_on.examples == len(TEXTS)
    assert "Whether heads were chosen on the same examples is unknown." in " ".join(done.output.split())
    done = run(*given, *data, "--compensate", "lstsq", "--out", str(tmp_path / "compensated"))
    assert done.exit_code == 0, done.output
    measured = hc.Record.load(tmp_path / "compensated" / "record.json").parts.measured_on
    assert measured.held_out is None
    assert measured.examples + measured.chosen_on[1].examples == len(TEXTS)


def test_it_counts_texts_with_a_prediction_and_names_no_split_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in (*TEXTS, "w5", "w7")))
    hc.save(zoo.build("llama"), tmp_path / "model", tokenizer=word_tokenizer())
    done = run("evaluate", str(tmp_path / "model"), "--data", str(file), "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert f"on{len(TEXTS)}textsof{file}." in "".join(done.output.split()), "lines end within a long path"
    parts = hc.Record.load(tmp_path / "out" / "record.json").parts
    assert (parts.examples, len(parts.statistics)) == (len(TEXTS), len(TEXTS) + 2)
