"""Pruning for a runtime, inspecting for all of them, and measuring by the lm-evaluation-harness, from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import zoo
from headcount.cli.main import main
from tokens import byte_level_tokenizer, sentences, word_tokenizer

TEXTS = ["one two three", "a small house", "words and words", "two small words"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def words(done: Result) -> str:
    return " ".join(done.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with groups of two heads, a BERT, texts, and a task of the harness with its data."""
    place = tmp_path_factory.mktemp("deployment")
    llama = zoo.build("llama")
    llama.resize_token_embeddings(320)
    hc.save(llama, place / "llama", tokenizer=byte_level_tokenizer())
    hc.save(llama, place / "words", tokenizer=word_tokenizer())
    hc.save(zoo.build("bert"), place / "bert", tokenizer=word_tokenizer())
    (place / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    rows = [{"text": text, "choices": ["a", "b"], "answer": index % 2} for index, text in enumerate(sentences(6))]
    (place / "docs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    task = {
        "task": "letters", "dataset_path": "json", "test_split": "test", "output_type": "multiple_choice",
        "dataset_kwargs": {"data_files": {"test": str(place / "docs.jsonl")}}, "doc_to_text": "{{text}}",
        "doc_to_target": "answer", "doc_to_choice": "{{choices}}", "metric_list": [{"metric": "acc"}],
    }  # fmt: skip
    (place / "letters.yaml").write_text(json.dumps(task))  # JSON is YAML
    return place


def test_a_model_is_pruned_for_a_runtime_and_measured_by_the_harness(folder: Path, tmp_path: Path) -> None:
    half, data = tmp_path / "half", ["--task", "language-modelling", "--data", folder / "texts.txt"]
    done = run(
        "prune", folder / "llama", "--choose", "magnitude", "--keep", "50%", "--for", "gguf", *data, "--measure-task",
        f"lm-eval:{folder / 'letters.yaml'}", "--step", "100%", "--out", half,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    record, sites = hc.Record.load(half / "record.json"), hc.locate(hc.load(half))
    assert record.signature.arguments["shape"] == "even:first=1"
    assert all(len(set(site.served)) <= 1 for site in sites)
    assert sites[0].num_heads >= 1
    assert record.parts.metric == "acc"
    assert len(record.parts.statistics["after"]) == 6
    inspected = run("inspect", half)
    assert "repeated" not in words(inspected)
    assert "prune --for gguf" not in words(inspected)
    measured = run("evaluate", half, "--task", f"lm-eval:{folder / 'letters.yaml'}", "--out", tmp_path / "eval")
    assert measured.exit_code == 0, measured.output
    assert "it/s" not in done.output + measured.output, "progress bars of the harness"
    evaluation = hc.Record.load(tmp_path / "eval" / "record.json").parts
    assert evaluation.statistics == record.parts.statistics["after"]


def test_the_harness_measures_every_point_of_a_trade_off(folder: Path, tmp_path: Path) -> None:
    harness = f"lm-eval:{folder / 'letters.yaml'}"
    done = run(
        "study", "tradeoff", folder / "llama", "--keep", "9,6", "--ways", "rank-magnitude/untuned", "--no-roles",
        "--task", "language-modelling", "--data", folder / "texts.txt", "--measure-task", harness, "--out", tmp_path,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    parts = hc.Record.load(tmp_path / "record.json").parts
    assert parts.metric == "acc"
    whole = hc.task(harness, tokenizer=byte_level_tokenizer()).quality(hc.load(folder / "llama"))
    assert parts.whole.value == pytest.approx(whole.value)
    assert {point.keep for point in parts.points} == {9, 6}
    assert all(f"--measure-task {harness}" in point.command for point in parts.points)


def test_inspect_says_what_a_runtime_lacks_and_what_helps(folder: Path, tmp_path: Path) -> None:
    llama = hc.load(folder / "llama")
    heads = hc.locate(llama).heads
    hc.save(hc.remove(llama, hc.locate(llama).mask(off=[heads[0]]), verify=False), tmp_path / "uneven")
    done = run("inspect", tmp_path / "uneven", "--json")
    assert done.exit_code == 0, done.output
    fits = json.loads(done.output)["parts"]["runtimes"]
    assert fits["vllm"]["fits"]
    assert "headcount prune --for vllm chooses heads without this cost" in fits["vllm"]["words"][-1]
    assert "even groups" in fits["vllm"]["words"][-1]
    assert fits["onnx"]["fits"]
    assert not any("--for" in text for text in fits["onnx"]["words"])
    assert not fits["gguf"]["fits"], "there is no tokenizer beside it"
    assert "save it beside the model" in fits["gguf"]["words"][0]
    assert not fits["ctranslate2"]["fits"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["prune", "bert", "--remove", "encoder.0.0", "--for", "gguf"], 1, "cannot be pruned for gguf: BertFor"),
        (["prune", "words", "--remove", "decoder.1.*", "--for", "gguf"], 1, "its tokenizer is of the kind WordLevel"),
        (["prune", "llama", "--remove", "decoder.0.0", "--for", "vllm"], 2, "decoder.0 keeps 1, 2 heads of its groups"),
        (["score", "llama", "--task", "lm-eval:letters", "--data", "x"], 2, "the harness measures models"),
        (["prune", "llama", "--remove", "decoder.0.0", "--measure-task", "letters"], 2, "expected lm-eval:TASK[,TASK]"),
        (
            ["evaluate", "llama", "--task", "lm-eval:letters", "--max-length", "5"],
            2,
            "does nothing with --task lm-eval",
        ),
        (["evaluate", "llama"], 2, "Missing option '--data'"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    command, model, *others = arguments
    out = ["--out", str(tmp_path / "out")] if command == "prune" else []
    done = run(command, folder / model, *others, *out)
    assert done.exit_code == code, done.output
    assert message in words(done)
    assert not (tmp_path / "out").exists()
