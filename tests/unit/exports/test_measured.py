"""Exports are measured beside PyTorch models, each in its runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headcount as hc
import zoo
from headcount.errors import UsageError
from headcount.exports.load_export import load_export
from headcount.studies.speed import Bench, speed
from tokens import byte_level_tokenizer, word_tokenizer

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


def test_a_runtime_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.exports.load_export.missing", list)
    (tmp_path / "half.gguf").write_bytes(b"")
    with pytest.raises(UsageError, match=r"needs gguf, xllamacpp: pip install headcount\[gguf\]"):
        load_export(tmp_path / "half.gguf")
