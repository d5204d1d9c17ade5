"""Exports are measured beside PyTorch models, each in its runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest
import torch

import headcount as hc
import zoo
from headcount.errors import UsageError
from headcount.exports.export import RUNTIMES
from headcount.exports.load_export import load_export
from headcount.exports.measured import Measured
from headcount.exports.module import RuntimeModule
from headcount.studies.speed import Bench, TorchSubject, speed
from tokens import byte_level_tokenizer, sentences, word_tokenizer

LAYERS, KV_HEADS, HEAD_DIM, FLOAT = 3, 2, 16, 4
BENCH = Bench(batches=(2,), lengths=(6,), written=2, repeats=2, warmup=0)


def llama() -> Any:
    model = zoo.build("llama")
    model.resize_token_embeddings(320)
    return model


def exported(model: Any, runtime: str, out: Path, tokenizer: Any = None) -> Path:
    hc.export(model, runtime, out, tokenizer=tokenizer, check=False)
    return out


def test_exports_are_timed_beside_the_model(tmp_path: Path) -> None:
    model = llama()
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.1.0", "decoder.1.1"]), verify=False)
    paths = {
        "gguf": exported(small, "gguf", tmp_path / "half.gguf", byte_level_tokenizer()),
        "onnx": exported(small, "onnx", tmp_path / "half.onnx"),
        "openvino": exported(small, "openvino", tmp_path / "half"),
    }
    record = speed({"whole": model, **{name: load_export(path) for name, path in paths.items()}}, bench=BENCH)
    assert {(row.model, row.what) for row in record.parts.rows} == {
        (name, what) for name in ("whole", *paths) for what in ("reading", "writing")
    }
    # one key/value head of six is gone: keys and values of six tokens in float32
    whole = 2 * 6 * LAYERS * KV_HEADS * HEAD_DIM * FLOAT
    sizes = record.parts.models
    assert sizes["whole"].cache_bytes == whole
    assert {sizes[name].cache_bytes for name in paths} == {whole * 5 // 6}
    assert sizes["gguf"].weight_bytes == paths["gguf"].stat().st_size
    assert sizes["onnx"].stated_heads is None


def test_llama_cpp_writes_as_many_tokens_as_are_counted(tmp_path: Path) -> None:
    """It stops without a word where the context ends, here after 64 tokens."""
    export = load_export(exported(llama(), "gguf", tmp_path / "whole.gguf", byte_level_tokenizer()))
    bench = Bench(batches=(1,), lengths=(60,), written=40, repeats=1, warmup=0)
    length = speed({"gguf": export}, bench=bench).parts.rows[0].length
    answer = cast(Any, export)._llama_cpp.server.handle_completions(
        {"prompt": list(range(3, 3 + length)), "n_predict": 40, "temperature": 0.0, "ignore_eos": True}
    )
    assert (length, answer["usage"]["completion_tokens"]) == (24, 40)


@pytest.mark.parametrize("length", [65, 62])
def test_a_graph_without_positions_for_a_text_is_refused_with_the_reason(length: int, tmp_path: Path) -> None:
    export = load_export(exported(zoo.build("gpt2"), "onnx", tmp_path / "whole.onnx"))  # of 64 positions
    bench = Bench(batches=(1,), lengths=(length,), written=3, repeats=1, warmup=0)
    with pytest.raises(UsageError, match=rf"whole.onnx does not read {length} tokens.*--lengths.*idx=64"):
        speed({"onnx": export}, bench=bench)


def test_a_translator_is_timed(tmp_path: Path) -> None:
    model, tokenizer = zoo.build("pegasus"), word_tokenizer(framed=True)
    tokenizer.unk_token = "w3"
    translator = load_export(exported(model, "ctranslate2", tmp_path / "half", tokenizer))
    record = speed({"model": model, "half": translator}, bench=BENCH)
    assert [row.what for row in record.parts.rows if row.model == "half"] == ["reading", "writing"]


def test_what_is_no_export_is_left_to_others(tmp_path: Path) -> None:
    hc.save(zoo.build("bert"), tmp_path / "bert")
    assert load_export(tmp_path / "bert") is None
    assert load_export("hub/name") is None


@pytest.mark.parametrize("graph", ["model.onnx", "openvino_model.xml", "shared_vocabulary.json"])
def test_a_folder_with_the_weights_of_a_model_is_that_model(graph: str, tmp_path: Path) -> None:
    """A graph beside them is left from an earlier model, or of another program; bench took it for the model."""
    out = tmp_path / "bert"
    hc.save(zoo.build("bert"), out)
    if graph == "model.onnx":
        exported(zoo.build("bert"), "onnx", out / graph)
    else:
        (out / graph).write_text("of another model")
    assert load_export(out) is None


def test_a_graph_of_another_program_is_refused_with_its_inputs(tmp_path: Path) -> None:
    file = exported(zoo.build("bert"), "onnx", tmp_path / "model.onnx")
    graph = onnx.load(file)
    graph.graph.input.append(onnx.helper.make_tensor_value_info("position_ids", onnx.TensorProto.INT64, ["b", "t"]))
    onnx.save(graph, file)
    with pytest.raises(UsageError, match=r"model\.onnx cannot be measured: a graph of it takes position_ids"):
        load_export(file)


def test_one_graph_of_a_pair_is_refused_with_its_inputs(tmp_path: Path) -> None:
    pair = exported(zoo.build("pegasus"), "onnx", tmp_path / "pair")
    with pytest.raises(UsageError, match=r"takes encoder_attention_mask.* a whole folder"):
        load_export(pair / "decoder_model.onnx")


def test_a_runtime_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.exports.load_export.missing", list)
    (tmp_path / "half.gguf").write_bytes(b"")
    with pytest.raises(UsageError, match=r"needs gguf, xllamacpp: pip install headcount\[gguf\]"):
        load_export(tmp_path / "half.gguf")


def test_the_quality_of_a_decoder_is_measured_in_its_runtime(tmp_path: Path) -> None:
    """Texts of different lengths: padding must not count."""
    model = llama()
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.1.0", "decoder.1.1"]), verify=False)
    tokenizer = byte_level_tokenizer()
    texts = ["A little girl.", "Once upon a time", "x"] * 3  # fewer than six with predictions have no interval
    task = hc.task("language-modelling", texts=texts, tokenizer=tokenizer, batch_size=2)
    paths = {
        "gguf": exported(small, "gguf", tmp_path / "half.gguf", tokenizer),
        "onnx": exported(small, "onnx", tmp_path / "half.onnx"),
        "openvino": exported(small, "openvino", tmp_path / "half"),
    }
    record = speed(
        {"whole": model, "half": small, **{name: load_export(path) for name, path in paths.items()}},
        bench=BENCH,
        task=task,
    )
    quality = record.parts.quality
    for name in paths:
        assert quality[name].metric == "perplexity"
        assert quality[name].value == pytest.approx(quality["half"].value, rel=2e-3)
        assert quality[name].difference == pytest.approx(quality[name].value - quality["whole"].value)
        assert quality[name].difference_low <= quality[name].difference <= quality[name].difference_high
    assert quality["whole"].difference == 0
    assert abs(quality["half"].difference) > 0.01 * quality["whole"].value
    assert record.signature.data == task.fingerprint


def test_a_text_beyond_the_context_of_llama_cpp_is_refused(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    path = exported(llama(), "gguf", tmp_path / "whole.gguf", tokenizer)  # of 64 tokens
    task = hc.task("language-modelling", texts=["q" * 70, "Once upon a time"], tokenizer=tokenizer)
    with pytest.raises(UsageError, match=r"a text of 64 tokens: .* context size \(64 tokens\).*--max-length"):
        speed({"gguf": load_export(path)}, bench=BENCH, task=task)


def test_the_quality_of_a_classifier_and_of_an_encoder_is_measured(tmp_path: Path) -> None:
    tokenizer, texts = word_tokenizer(), sentences(6)
    classifier, encoder = zoo.build("bert"), zoo.build("bert").base_model
    tasks = {
        "classifier": hc.task("classification", texts=texts, labels=[0, 1] * 3, tokenizer=tokenizer),
        "encoder": hc.task("embedding", texts=texts, tokenizer=tokenizer, model=encoder),
    }
    for name, model in (("classifier", classifier), ("encoder", encoder)):
        graph = load_export(exported(model, "onnx", tmp_path / f"{name}.onnx"))
        assert graph is not None
        measured = tasks[name].quality(graph.module())
        np.testing.assert_allclose(measured.statistics, tasks[name].quality(model).statistics, atol=1e-5)
        other = tasks["encoder" if name == "classifier" else "classifier"]
        with pytest.raises(UsageError, match="but the task needs"):
            other.quality(graph.module())


def test_the_loss_of_an_encoder_decoder_is_measured_and_bleu_refused(tmp_path: Path) -> None:
    model, tokenizer = zoo.build("pegasus"), word_tokenizer(framed=True)
    data = {"source": sentences(4), "target": sentences(4, seed=1), "tokenizer": tokenizer}
    task = hc.task("translation", **data, metric="loss")
    graphs = load_export(exported(model, "onnx", tmp_path / "graphs", tokenizer))
    assert graphs is not None
    assert task.quality(graphs.module()).value == pytest.approx(task.quality(model).value, rel=1e-5)
    with pytest.raises(UsageError, match=r"BLEU needs generated text\. Give --metric loss"):
        speed({"whole": model, "graphs": graphs}, bench=BENCH, task=hc.task("translation", **data))


@pytest.mark.parametrize("architecture", ["mbart", "t5gemma"])
def test_the_decoder_of_an_export_reads_what_that_of_the_model_reads(architecture: str, tmp_path: Path) -> None:
    """Its last label, or the first token of the config of its decoder."""
    model, tokenizer = zoo.without_start_token(architecture), word_tokenizer(framed=True)
    model.config.save_pretrained(tmp_path)
    texts = {"source": sentences(4), "target": sentences(4, seed=1)}
    task = hc.task("translation", **texts, tokenizer=tokenizer, metric="loss")

    def compute(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            return {"logits": model(**inputs).logits}

    export = RuntimeModule(compute, tmp_path)
    assert task.quality(export).value == pytest.approx(task.quality(model).value, rel=1e-5)


def test_the_cache_of_onnx_stays_in_the_runtime(tmp_path: Path) -> None:
    """Arrays would be copied out of the runtime and in again for every token."""
    graphs = RUNTIMES["onnx"].model(exported(llama(), "onnx", tmp_path / "whole.onnx"))  # type: ignore[attr-defined]
    ids = np.array([[5, 6, 7]])
    progress = graphs.begin({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    for _ in range(2):
        graphs.step(progress, ids)
    assert len(progress.cache) == 2 * LAYERS
    assert not any(isinstance(value, np.ndarray) for value in progress.cache.values())
    assert {value.shape()[2] for value in progress.cache.values()} == {6}


def test_bytes_of_a_long_cache_are_counted_without_running_the_model() -> None:
    tokens = 1_000_000_000  # a text of this length could not be run
    model = llama()
    model.config.max_position_embeddings = tokens
    assert TorchSubject(model).cache_bytes(tokens) == 2 * tokens * LAYERS * KV_HEADS * HEAD_DIM * FLOAT


@pytest.mark.parametrize(("name", "runtime"), [("half.onnx", "ONNX Runtime"), ("half.gguf", "llama.cpp")])
def test_a_damaged_export_is_named_with_its_runtime(tmp_path: Path, name: str, runtime: str) -> None:
    (tmp_path / name).write_bytes(b"GGUF, or not")
    with pytest.raises(UsageError, match=f"{runtime} does not load .*{name}, which may be damaged"):
        load_export(tmp_path / name)


def test_a_file_that_is_missing_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no file .*half\.onnx"):
        load_export(tmp_path / "half.onnx")


def test_exports_that_differ_anywhere_are_different(tmp_path: Path) -> None:
    """Of files above 1 MB only the end was compared."""
    first, second = tmp_path / "first.gguf", tmp_path / "second.gguf"
    first.write_bytes(b"a" + bytes(2_000_000))
    second.write_bytes(b"b" + bytes(2_000_000))
    prints = [Measured.fingerprint(cast(Measured, SimpleNamespace(path=path))) for path in (first, second, first)]
    assert prints[0] == prints[2] != prints[1]


def test_files_of_the_user_are_not_counted_as_the_export(tmp_path: Path) -> None:
    out, model = tmp_path / "graph", zoo.build("bert")
    alone = hc.export(model, "openvino", out, check=False)
    before = load_export(out)
    (out / "results.csv").write_bytes(bytes(1_000_000))
    again, after = hc.export(model, "openvino", out, check=False, overwrite=True), load_export(out)
    assert before is not None
    assert after is not None
    assert again.size == alone.size == before.size(8).weight_bytes == after.size(8).weight_bytes
    assert before.fingerprint() == after.fingerprint()
    assert (out / "results.csv").is_file()
