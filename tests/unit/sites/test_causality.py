"""Causality is what a run shows, whatever the config says; testing it leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from behaviour import hooks
from headcount.errors import UsageError
from headcount.sites.causality import is_causal
from headcount.sites.fingerprint import weight_hash
from tokens import word_tokenizer

_SMALL: dict[str, Any] = {
    "vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_GROUPED = {**_SMALL, "num_key_value_heads": 2, "head_dim": 8}
BOTH_WAYS: dict[str, Callable[[], nn.Module]] = {
    "distilbert": lambda: tf.DistilBertForMaskedLM(
        tf.DistilBertConfig(vocab_size=32, dim=16, n_layers=2, n_heads=2, hidden_dim=16)
    ),
    "albert": lambda: tf.AlbertForMaskedLM(tf.AlbertConfig(**_SMALL, embedding_size=8)),
    "mpnet": lambda: tf.MPNetForMaskedLM(tf.MPNetConfig(**_SMALL)),
    "deberta": lambda: tf.DebertaV2ForMaskedLM(tf.DebertaV2Config(**_SMALL)),
    "modernbert": lambda: tf.ModernBertForMaskedLM(tf.ModernBertConfig(**_SMALL)),
    "llama": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**_GROUPED, is_causal=False)),
    "gemma3": lambda: tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(**_GROUPED, use_bidirectional_attention=True)),
}
ONE_WAY: dict[str, Callable[[], nn.Module]] = {
    "gemma2": lambda: tf.Gemma2ForCausalLM(tf.Gemma2Config(**_GROUPED, use_bidirectional_attention=True)),
    "llama": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**_GROUPED)),
    "mixtral": lambda: tf.MixtralForCausalLM(tf.MixtralConfig(**_GROUPED, num_local_experts=4)),
    "bert": lambda: tf.BertLMHeadModel(tf.BertConfig(**_SMALL, is_decoder=True)),
}
TEXTS = ["w5 w6 w7 w8", "w9 w10 w11", "w4 w7 w9 w5 w6 w8 w10"]


def _task(name: str) -> hc.Task:
    return hc.task(name, texts=TEXTS, tokenizer=word_tokenizer(mask="w4"))


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_a_model_that_sees_what_it_predicts_is_no_language_model(name: str) -> None:
    torch.manual_seed(0)
    model = BOTH_WAYS[name]().eval()
    assert not is_causal(model)
    with pytest.raises(UsageError, match="both directions"):
        _task("language-modelling").quality(model)
    assert _task("masked-language-modelling").quality(model).value >= 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ONE_WAY)
def test_a_model_that_sees_earlier_tokens_only_is_causal(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = ONE_WAY[name]().eval().to(dtype)
    assert is_causal(model)
    assert _task("language-modelling").quality(model).value > 1


@pytest.mark.parametrize("architecture", ["bart", "t5"])
def test_an_encoder_decoder_is_no_language_model(architecture: str) -> None:
    with pytest.raises(UsageError, match="is an encoder-decoder"):
        _task("language-modelling").quality(zoo.build(architecture))


def test_the_test_run_leaves_no_trace() -> None:
    """Weights, modes, random numbers and probes are as before; a tap does not see the run."""
    model = zoo.build("llama").train()
    before, random = weight_hash(model), torch.get_rng_state()
    seen: list[Any] = []
    with hc.tapped(model, "outputs", sink=lambda *_: seen.append(_)):
        assert is_causal(model)
    assert not seen
    assert model.training
    assert hooks(model) == 0
    assert weight_hash(model) == before
    assert torch.equal(torch.get_rng_state(), random)


def test_a_model_is_tested_again_after_a_switch() -> None:
    model = ONE_WAY["llama"]().eval()
    runs: list[int] = []
    model.model.register_forward_pre_hook(lambda *_: runs.append(1))
    assert is_causal(model)
    assert is_causal(model)
    assert len(runs) == 2
    model.config.is_causal = False
    assert not is_causal(model)
    assert len(runs) == 4


def test_a_model_without_weights_is_judged_by_its_config() -> None:
    with torch.device("meta"):
        assert is_causal(ONE_WAY["llama"]())
        assert not is_causal(BOTH_WAYS["llama"]())
        assert not is_causal(BOTH_WAYS["distilbert"]())


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_roles_of_a_decoder_that_looks_ahead_count_later_tokens(name: str) -> None:
    """The next token can be looked at, and chance is that of all other tokens."""
    torch.manual_seed(0)
    model = BOTH_WAYS[name]().eval()
    tokenizer = word_tokenizer()
    texts = [" ".join(f"w{token}" for token in row) for row in np.random.default_rng(0).integers(4, 30, (20, 6))]
    found = hc.roles(model, texts, tokenizer=tokenizer, roles=["positional"])["decoder.0.0"]
    by_label = {evidence.label: evidence for evidence in found}
    assert by_label["+1"].baseline == pytest.approx(by_label["-1"].baseline)
    assert by_label["+1"].trials == by_label["-1"].trials > 0
    ids = tokenizer(texts[:1], return_tensors="pt")["input_ids"]
    with torch.no_grad(), hc.played(model, {"decoder.1.0": "positional +1"}):
        played = model(ids).logits
    assert not torch.equal(played, model(ids).logits)
