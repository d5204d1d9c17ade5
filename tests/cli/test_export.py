"""headcount export as a user meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import zoo
from headcount.cli.main import main
from headcount.errors import UsageError
from limits import file_size_limit
from tokens import byte_level_tokenizer, word_tokenizer


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, arguments)])


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders: a pruned Llama with its tokenizer, a BERT."""
    folder = tmp_path_factory.mktemp("models")
    llama = zoo.build("llama")
    llama.resize_token_embeddings(320)
    small = hc.remove(llama, hc.locate(llama).mask(off=["decoder.1.*", "decoder.2.0"]), verify=False)
    hc.save(small, folder / "llama", tokenizer=byte_level_tokenizer())
    hc.save(zoo.build("bert"), folder / "bert", tokenizer=word_tokenizer())
    return folder


def test_a_pruned_folder_becomes_a_file_that_was_checked(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "half.gguf"
    done = run(models / "llama", "--to", "gguf", "--out", out)
    assert done.exit_code == 0, done.output
    assert "llama.cpp (xllamacpp)" in done.output
    assert "24 of 24 greedy choices are the same" in done.output
    before = out.read_bytes()
    again = run(models / "llama", "--to", "gguf", "--out", out)
    assert again.exit_code == 1
    assert "exists; pass overwrite=True (--overwrite)" in again.output
    assert out.read_bytes() == before
    replaced = run(
        models / "llama", "--to", "gguf", "--out", out, "--overwrite", "--type", "f16", "--json", "--no-check"
    )
    assert replaced.exit_code == 0, replaced.output
    assert json.loads(replaced.output)["dtype"] == "f16"
    assert out.stat().st_size < len(before)


def test_a_folder_is_replaced_when_asked_and_the_model_itself_never(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "half"
    vllm = [models / "llama", "--to", "vllm", "--no-check", "--out"]
    assert run(*vllm, out).exit_code == 0
    (out / "notes.md").write_text("mine")
    refused = run(*vllm, out)
    assert refused.exit_code == 1
    assert "is not empty; pass overwrite=True (--overwrite)" in refused.output
    assert run(*vllm, out, "--overwrite").exit_code == 0
    assert (out / "notes.md").read_text() == "mine"
    itself = run(*vllm, models / "llama", "--overwrite")
    assert itself.exit_code == 2
    assert "is the model itself" in itself.output
    assert len(hc.locate(hc.load(models / "llama")).heads) == 7


def test_a_loaded_model_does_not_replace_the_export_that_it_was_loaded_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers loads the folder for vLLM, so it may be the only copy of the weights."""
    source = tmp_path / "source"
    hc.export(zoo.build("llama"), "vllm", source, check=False)
    before = sorted(path.name for path in source.iterdir())
    model = hc.load(source)
    monkeypatch.chdir(tmp_path)
    for out in (source, "source", source / ".." / "source"):
        with pytest.raises(UsageError, match="is the model itself"):
            hc.export(model, "openvino", out, overwrite=True)
    assert sorted(path.name for path in source.iterdir()) == before
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    hc.export(zoo.build("llama"), "vllm", Path.cwd(), check=False)  # a model that was not loaded is in no folder


def test_only_the_files_of_an_export_are_replaced(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    openvino = [models / "bert", "--to", "openvino", "--no-check", "--out", out]
    assert run(*openvino).exit_code == 0
    own = dict.fromkeys(("notes.txt", "serve.py", "results.json", "probe.bin", "probe.safetensors"), "mine")
    for listed in (True, False):  # exports of earlier versions have no list of their files
        for name, text in own.items():
            (out / name).write_text(text)
        if not listed:
            (out / "headcount-export.json").unlink()
        (out / "openvino_model.bin").write_bytes(b"old")
        done = run(*openvino, "--overwrite")
        assert done.exit_code == 0, done.output
        assert {name: (out / name).read_text() for name in own} == own
        assert (out / "openvino_model.bin").read_bytes() != b"old"
    vllm = run(models / "llama", "--to", "vllm", "--no-check", "--out", out, "--overwrite")
    assert vllm.exit_code == 0, vllm.output
    assert not list(out.glob("openvino_*")), "files of the export that is replaced"


@pytest.mark.parametrize("beside", ["", "openvino_model.xml"])
def test_an_export_does_not_replace_a_model(models: Path, tmp_path: Path, beside: str) -> None:
    out = tmp_path / "model"
    shutil.copytree(models / "llama", out)
    if beside:
        (out / beside).write_text("a graph of another program")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for arguments in ([models / "bert", "--to", "openvino"], [models / "llama", "--to", "vllm"]):
        done = run(*arguments, "--no-check", "--out", out, "--overwrite")
        assert done.exit_code == 1
        assert "is a model, not an export; nothing was overwritten" in done.output
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model-00001-of-00002.bin"])
def test_a_model_beside_its_export_is_not_replaced(models: Path, tmp_path: Path, weights: str) -> None:
    out = tmp_path / "both"
    openvino = [models / "bert", "--to", "openvino", "--no-check", "--out", out]
    assert run(*openvino).exit_code == 0
    (out / weights).write_bytes(b"weights that no export wrote")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for options in (["--overwrite"], []):
        done = run(*openvino, *options)
        assert done.exit_code == 1
        assert "is a model, not an export; nothing was overwritten" in done.output
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_file_above_the_limit_is_said_in_one_line(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "half.gguf"
    with file_size_limit(30_000):
        done = run(models / "llama", "--to", "gguf", "--no-check", "--out", out)
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {out} was not written: it would be larger than a file may be here")
    assert not list(tmp_path.iterdir())


def test_what_a_process_left_that_was_killed_beside_a_finished_file_goes(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "half.gguf"
    out.touch()
    (tmp_path / ".half.gguf.headcount-abc").mkdir()
    (tmp_path / ".half.gguf.headcount-abc" / "half.gguf").touch()
    assert "exists; pass overwrite" in run(models / "llama", "--to", "gguf", "--out", out).output
    assert list(tmp_path.iterdir()) == [out]


def test_a_runtime_that_is_not_installed_leaves_the_result_unchecked(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.exports.export.missing", lambda packages: [p for p in packages if p == "xllamacpp"])
    done = run(models / "llama", "--to", "gguf", "--out", tmp_path / "half.gguf")
    assert done.exit_code == 0, done.output
    assert "not checked; pip install headcount[gguf] checks it" in done.output
    assert (tmp_path / "half.gguf").is_file()


def test_a_package_that_writes_the_format_is_asked_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.exports.export.missing", list)
    done = run(tmp_path / "no", "--to", "gguf", "--out", tmp_path / "half.gguf")
    assert done.exit_code == 2
    assert "Writing gguf needs gguf: pip install headcount[gguf]." in done.output


def test_a_wrong_result_is_not_kept(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of heads that are not turned into pairs: llama.cpp rotates other numbers."""
    monkeypatch.setattr("headcount.exports.gguf.tensors._paired", lambda rows: rows)
    done = run(models / "llama", "--to", "gguf", "--out", tmp_path / "half.gguf")
    assert done.exit_code == 1
    assert "computes something else than the model" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (
            "bert",
            ["--to", "gguf", "--out", "OUT/b.gguf"],
            "ForSequenceClassification is not among Llama",
        ),
        ("llama", ["--to", "gguf", "--out", "OUT/half.bin"], "the name of a file that ends in .gguf"),
        ("llama", ["--to", "gguf", "--out", "OUT/half"], "the name of a file that ends in .gguf"),
        ("llama", ["--to", "gguf", "--out", "OUT/half.gguf", "--type", "q4"], "Unknown number format of gguf 'q4'"),
        ("llama", ["--to", "gguf", "--out", "OUT/half.gguf", "--dtype", "float16"], "--dtype does nothing here"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    model: str, arguments: list[str], message: str, models: Path, tmp_path: Path
) -> None:
    done = run(models / model, *(argument.replace("OUT", str(tmp_path)) for argument in arguments))
    assert done.exit_code in (1, 2)
    assert message in done.output
    assert not list(tmp_path.iterdir())


def test_inspect_says_which_runtimes_take_the_model(models: Path) -> None:
    done = CliRunner().invoke(main, ["inspect", str(models / "llama")], env={"COLUMNS": "500"})
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line for line in done.output.splitlines() if line.strip()}
    cells = {name: " ".join(line.split()[1:]) for name, line in lines.items()}
    assert cells["gguf"].startswith("yes stated to llama.cpp as deci; groups are not equal")
    assert cells["ctranslate2"].startswith("no LlamaForCausalLM is not among")
    assert cells["onnx"].startswith("yes the cache goes in and out of the graph")


def test_bench_measures_an_export_beside_the_checkpoint(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "half.gguf"
    assert run(models / "llama", "--to", "gguf", "--out", out, "--no-check").exit_code == 0
    few = ["--batches", "1", "--lengths", "4", "--written", "1", "--repeats", "1"]
    done = CliRunner().invoke(main, ["bench", str(models / "llama"), str(out), *few], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "half.gguf is faster in" in done.output


def test_bench_measures_the_quality_of_an_export_beside_its_speed(models: Path, tmp_path: Path) -> None:
    files = {"f32": tmp_path / "half.onnx", "int8": tmp_path / "half-int8.onnx"}
    for number_format, out in files.items():
        given = ["--to", "onnx", "--type", number_format, "--out", out, "--no-check"]
        assert run(models / "llama", *given).exit_code == 0
    (tmp_path / "texts.txt").write_text("A little girl.\nOnce upon a time\n")
    few = ["--batches", "1", "--lengths", "4", "--written", "1", "--repeats", "1", "--data", tmp_path / "texts.txt"]
    bench = ["bench", str(models / "llama"), *map(str, files.values()), *map(str, few)]
    done = CliRunner().invoke(main, bench, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    table = done.output.partition("Size, speed and quality")[2].splitlines()
    rows = {line.split()[0]: line.split() for line in table if line.startswith(("llama", "half"))}
    assert rows["llama"][-1] == "reference"
    assert rows["half.onnx"][4] == rows["llama"][4]  # perplexity: the export computes what the checkpoint computes
    assert rows["half-int8.onnx"][4] != rows["llama"][4]
    quality = json.loads(CliRunner().invoke(main, [*bench, "--json"]).stdout)["parts"]["quality"]
    assert quality[str(files["f32"])]["difference"] == pytest.approx(0, abs=1e-3)


def test_options_of_data_without_data_and_a_file_for_a_folder_are_refused(models: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["bench", str(models / "llama"), "--task", "language-modelling"])
    assert done.exit_code == 2
    assert "--task is for quality, which needs --data" in done.output
    (tmp_path / "notes").write_text("mine")
    refused = run(models / "llama", "--to", "openvino", "--out", tmp_path / "notes", "--overwrite")
    assert refused.exit_code == 2
    assert "notes is a file; give a folder" in refused.output
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_pruned_folder_has_a_card(models: Path, tmp_path: Path) -> None:
    given = ["--remove", "encoder.0.0", "--out", str(tmp_path / "half"), "--no-verify"]
    done = CliRunner().invoke(main, ["prune", str(models / "bert"), *given])
    assert done.exit_code == 0, done.output
    card = (tmp_path / "half" / "README.md").read_text()
    assert "# bert without 1 of its 12 attention heads" in card
    assert "heads chosen by hand" in card
