"""GGUF: what llama.cpp computes from the file is what the pruned model computes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
import transformers as tf
from transformers import PreTrainedModel

import headcount as hc
from headcount.errors import NotExportable
from headcount.exports.gguf.llama_cpp import load, loaded
from tokens import byte_level_tokenizer, mixed_lines, sentencepiece_tokenizer, word_tokenizer

SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 0,
}
MISSING: Any = object()  # the value of a setting that a config does not have
UNEVEN = ["decoder.1.*", "decoder.2.0", "decoder.2.1", "decoder.3.*[0-5]"]  # an empty layer, a whole group
BROKEN_GROUP = ["decoder.1.0", "decoder.2.2", "decoder.2.3"]
EVEN = ["decoder.*.0", "decoder.*.1"]
EMPTY_FIRST = ["decoder.0.*", "decoder.3.0", "decoder.3.1"]
TOKENIZER = byte_level_tokenizer()
# From the tokenizer.json of these models.
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_OTHERS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA_3, QWEN2 = _WORDS + r"|\p{N}{1,3}" + _OTHERS, _WORDS + r"|\p{N}" + _OTHERS


def build(family: str, **settings: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    sizes = {name: value for name, value in {**SIZES, **settings}.items() if value is not MISSING}
    config = getattr(tf, f"{family}Config")(**sizes)
    model = getattr(tf, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
            elif name.endswith("bias"):
                parameter.uniform_(-0.3, 0.3)
    return model


def pruned(model: PreTrainedModel, off: list[str]) -> PreTrainedModel:
    sites = hc.locate(model)
    return hc.remove(model, sites.mask(off=off), verify=False)


def fields(path: Path) -> dict[str, Any]:
    reader = gguf.GGUFReader(path)
    return {name: field.contents() for name, field in reader.fields.items()}


@pytest.mark.parametrize(
    ("family", "settings", "off", "architecture"),
    [
        ("Llama", {}, [], "llama"),
        ("Llama", {}, EVEN, "llama"),
        ("Llama", {}, UNEVEN, "deci"),
        ("Llama", {}, EMPTY_FIRST, "deci"),
        ("Llama", {}, BROKEN_GROUP, "deci"),
        ("Llama", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}, UNEVEN, "deci"),
        ("Mistral", {"sliding_window": None}, EVEN, "llama"),
        ("Mistral", {"sliding_window": None}, UNEVEN, "deci"),
        ("Qwen2", {"hidden_size": 128}, [], "qwen2"),
        ("Qwen2", {}, EVEN, "deci"),
        ("Qwen2", {}, UNEVEN, "deci"),
        ("Qwen2", {"head_dim": MISSING}, [], "qwen2"),  # as the published checkpoints
        ("Qwen2", {"head_dim": MISSING}, EVEN, "deci"),
        ("Qwen2", {"head_dim": MISSING}, UNEVEN, "deci"),
        ("Qwen2", {"head_dim": MISSING}, EMPTY_FIRST, "deci"),
        ("Llama", {"head_dim": MISSING}, EVEN, "llama"),
        ("Qwen3", {}, EVEN, "qwen3"),
        ("Qwen3", {"tie_word_embeddings": True}, UNEVEN, "openelm"),
        ("Qwen3", {"tie_word_embeddings": True}, BROKEN_GROUP, "openelm"),
    ],
)
def test_llama_cpp_computes_what_the_model_computes(
    family: str, settings: dict[str, Any], off: list[str], architecture: str, tmp_path: Path
) -> None:
    model = pruned(build(family, **settings), off)
    done = hc.export(model, "gguf", tmp_path / "small.gguf", tokenizer=TOKENIZER)
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4
    assert done.agreement.same_tokens == done.agreement.tokens == 24
    assert fields(tmp_path / "small.gguf")["general.architecture"] == architecture
    assert [path.name for path in tmp_path.iterdir()] == ["small.gguf"]


def test_rotary_positions_scaled_as_in_llama_3(tmp_path: Path) -> None:
    scaling = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    model = pruned(build("Llama", rope_parameters=scaling), UNEVEN)
    done = hc.export(model, "gguf", tmp_path / "small.gguf", tokenizer=TOKENIZER)
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4


def test_biases_of_compensation_are_written_also_where_no_head_is_left(tmp_path: Path) -> None:
    model = build("Qwen2")
    task = hc.task("language-modelling", texts=["the little girl"] * 4, tokenizer=_padded(TOKENIZER), batch_size=2)
    mask = hc.locate(model).mask(off=["decoder.1.*", "decoder.2.0"])
    small = hc.remove(model, mask, compensate="bias", task=task, add_bias=True)
    done = hc.export(small, "gguf", tmp_path / "small.gguf", tokenizer=TOKENIZER)
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4
    assert "one head of zeros is added, because no head is left, in layer 1" in done.notes


def test_all_chat_templates_are_written(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": "TOOLS {{ messages }}"}
    hc.export(build("Llama"), "gguf", tmp_path / "m.gguf", tokenizer=tokenizer)
    written = fields(tmp_path / "m.gguf")
    assert written["tokenizer.chat_template"] == tokenizer.chat_template["default"]
    assert written["tokenizer.chat_template.tool_use"] == tokenizer.chat_template["tool_use"]


def _padded(tokenizer: Any) -> Any:
    tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def test_what_repeated_key_value_heads_cost_is_said(tmp_path: Path) -> None:
    small = pruned(build("Llama"), BROKEN_GROUP)
    done = hc.export(small, "gguf", tmp_path / "small.gguf", tokenizer=TOKENIZER, check=False)
    assert done.unchecked == "not checked, as asked"
    (note,) = [note for note in done.notes if "repeated" in note]
    assert "layer 1 (4 -> 7)" in note
    assert "from 15 to 18 key/value heads, +20%" in note
    assert fields(tmp_path / "small.gguf")["deci.attention.head_count_kv"] == [4, 7, 3, 4]


@pytest.mark.parametrize(("dtype", "most"), [("f16", 0.05), ("q8_0", 0.5)])
def test_smaller_number_formats(dtype: str, most: float, tmp_path: Path) -> None:
    small = pruned(build("Llama"), UNEVEN)
    whole = hc.export(small, "gguf", tmp_path / "f32.gguf", tokenizer=TOKENIZER, check=False)
    done = hc.export(small, "gguf", tmp_path / "small.gguf", tokenizer=TOKENIZER, dtype=dtype)
    assert done.agreement is not None
    assert 0 < done.agreement.difference < most
    assert done.size < 0.7 * whole.size


def test_a_sliding_window_limits_the_context_that_is_stated(tmp_path: Path) -> None:
    done = hc.export(build("Mistral", sliding_window=64), "gguf", tmp_path / "m.gguf", tokenizer=TOKENIZER)
    assert fields(tmp_path / "m.gguf")["llama.context_length"] == 64
    assert any("sliding window" in note for note in done.notes)


@pytest.mark.parametrize(
    ("tokenizer", "name"),
    [
        (byte_level_tokenizer(), "gpt-2"),
        (byte_level_tokenizer(digits=True), "smollm"),
        (byte_level_tokenizer(split=LLAMA_3, ignore_merges=True), "llama-bpe"),
        (byte_level_tokenizer(split=QWEN2), "qwen2"),
        (sentencepiece_tokenizer(), "default"),
    ],
)
def test_llama_cpp_splits_text_as_the_tokenizer_does(tokenizer: Any, name: str, tmp_path: Path) -> None:
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    hc.export(build("Llama"), "gguf", tmp_path / "m.gguf", tokenizer=tokenizer, check=False)
    lines = [*mixed_lines(150), "the little girl <|start|> saw", "12345 + 67", "a\nb\n\nc", "Ünïcödé ﬁ", " leading"]
    with loaded(tmp_path / "m.gguf", context=64) as llama_cpp:
        different = [line for line in lines if llama_cpp.tokenize(line) != list(tokenizer(line).input_ids)]
    assert not different
    assert fields(tmp_path / "m.gguf")["tokenizer.ggml.pre"] == name
    assert fields(tmp_path / "m.gguf")["tokenizer.chat_template"] == tokenizer.chat_template


@pytest.mark.parametrize(
    ("model", "tokenizer", "message"),
    [
        (lambda: pruned(build("Qwen3"), UNEVEN), TOKENIZER, "tied"),
        (lambda: build("Llama", hidden_act="gelu"), TOKENIZER, "its activation is gelu"),
        (lambda: build("Llama"), word_tokenizer(320), "WordLevel"),
        (lambda: build("Llama"), byte_level_tokenizer(258), "its tokenizer has no merges"),
        (lambda: build("Llama"), None, "Pass the tokenizer"),
        (lambda: build("Gemma2"), TOKENIZER, "Gemma2ForCausalLM is not among LlamaForCausalLM"),
    ],
)
def test_what_llama_cpp_cannot_take_is_refused_before_work(
    model: Any, tokenizer: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(NotExportable, match=message):
        hc.export(model(), "gguf", tmp_path / "m.gguf", tokenizer=tokenizer)
    assert not list(tmp_path.iterdir())


def test_a_vocabulary_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match=r"The tokenizer has \d+ tokens, but the embedding has 300 rows"):
        hc.export(build("Llama", vocab_size=300), "gguf", tmp_path / "m.gguf", tokenizer=TOKENIZER)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signal masks")
def test_an_interruption_while_llama_cpp_starts_arrives_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that reached a thread of the server left the command waiting for ever, in one of a hundred tries."""
    held: list[set[int]] = []

    def server(params: Any) -> object:
        held.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        os.kill(os.getpid(), signal.SIGINT)
        return object()

    monkeypatch.setattr("xllamacpp.Server", server)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(KeyboardInterrupt):
        load(Path("any.gguf"), context=8, threads=1)
    assert {signal.SIGINT, signal.SIGTERM} <= held[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
