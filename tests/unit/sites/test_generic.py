"""Architectures no family describes: found when a test run confirms them, refused with the reason otherwise."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
from behaviour import difference, hooks, identical, observe, outputs, uneven, weights
from headcount.errors import NotRemovable, UnknownArchitecture
from headcount.sites.attention import Attention
from headcount.sites.causality import is_causal

SMALL = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 99}
GROUPED = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0}
TOWER = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}

REMOVABLE = {
    "camembert": lambda: tf.CamembertForMaskedLM(tf.CamembertConfig(**SMALL, max_position_embeddings=64)),
    "gemma": lambda: tf.GemmaForCausalLM(tf.GemmaConfig(**GROUPED, head_dim=16)),
    "phi": lambda: tf.PhiForCausalLM(tf.PhiConfig(**GROUPED)),
    "falcon": lambda: tf.FalconForCausalLM(tf.FalconConfig(**SMALL, multi_query=False, alibi=False)),
    "mixtral": lambda: tf.MixtralForCausalLM(tf.MixtralConfig(**GROUPED, num_local_experts=2)),
    "dinov2": lambda: tf.Dinov2Model(
        tf.Dinov2Config(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, image_size=16, patch_size=4)
    ),
    "siglip": lambda: tf.SiglipModel(
        tf.SiglipConfig(
            text_config={**TOWER, "vocab_size": 99, "max_position_embeddings": 64},
            vision_config={**TOWER, "image_size": 16, "patch_size": 4},
        )
    ),
}
MIXED = {
    "olmo2": (lambda: tf.Olmo2ForCausalLM(tf.Olmo2Config(**GROUPED)), "q_norm normalises over all heads"),
    "bitnet": (lambda: tf.BitNetForCausalLM(tf.BitNetConfig(**GROUPED)), "attn_sub_norm normalises all heads"),
    "gpt_oss": (
        lambda: tf.GptOssForCausalLM(
            tf.GptOssConfig(**GROUPED, head_dim=16, num_local_experts=2, num_experts_per_tok=1)
        ),
        "sinks",
    ),
    "xglm": (
        lambda: tf.XGLMForCausalLM(
            tf.XGLMConfig(
                d_model=64, num_layers=3, attention_heads=4, ffn_dim=96, vocab_size=99, max_position_embeddings=64
            )
        ),
        "does not run with fewer",
    ),
}


def scaled(model: nn.Module) -> nn.Module:
    """Weights large enough for every head to matter, norms uneven enough to mix them."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.data.uniform_(-0.3, 0.3) if parameter.dim() > 1 else parameter.data.uniform_(0.5, 1.5)
    model.config.architectures = [type(model).__name__]
    return model.eval()


@pytest.mark.parametrize("name", REMOVABLE)
def test_found_masked_removed_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = scaled(REMOVABLE[name]())
    sites = hc.locate(model)
    assert {site.family for site in sites} == {"generic"}
    assert hooks(model) == 0
    for off in (uneven(sites), [f"{sites[0].kind}.0.*"]):
        small = hc.remove(model, sites.mask(off=off))
        folder = tmp_path / str(len(off))
        hc.save(small, folder)
        found = hc.load(folder)
        assert hc.locate(found).heads == hc.locate(small).heads == sites.mask(off=off).kept
        assert identical(weights(found), weights(small))
        assert difference(observe(small), observe(found)) == 0.0


@pytest.mark.parametrize("name", MIXED)
def test_mixed_heads_are_masked_but_not_removed(name: str) -> None:
    build, reason = MIXED[name]
    model = scaled(build())
    sites, before = hc.locate(model), outputs(model)
    for head in (sites.heads[0], sites.heads[-1]):
        with hc.masked(model, sites.mask(off=head)):
            assert not identical(outputs(model), before)
    with pytest.raises(NotRemovable, match=reason):
        hc.remove(model, sites.mask(off=uneven(sites)))
    assert identical(outputs(model), before)


def test_a_mask_before_a_norm_is_put_before_the_norm() -> None:
    """BitNet norms the concatenated heads: switching one off must change what the norm sees."""
    model = scaled(MIXED["bitnet"][0]())
    site = hc.locate(model)[0]
    assert site.entry is site.module.attn_sub_norm
    with hc.tapped(model, "outputs") as taps:
        outputs(model)
    head = taps["decoder.0"][:, :, 1]
    assert head.abs().max() > 0
    with hc.masked(model, hc.locate(model).mask(off="decoder.0.1")), hc.tapped(model, "outputs") as taps:
        outputs(model)
    assert taps["decoder.0"][:, :, 1].abs().max() == 0


def test_what_cannot_be_confirmed_is_refused() -> None:
    config = tf.CodeGenConfig(n_embd=64, n_layer=2, n_head=4, vocab_size=99, n_positions=64, rotary_dim=8)
    with pytest.raises(UnknownArchitecture, match="not its heads side by side"):
        hc.locate(tf.CodeGenForCausalLM(config).eval())


def test_attention_of_several_streams_is_refused() -> None:
    """ProphetNet's decoder predicts several next tokens, each with a stream of its own."""
    config = tf.ProphetNetConfig(
        vocab_size=99, hidden_size=64, encoder_ffn_dim=64, num_encoder_layers=1, num_encoder_attention_heads=4,
        decoder_ffn_dim=64, num_decoder_layers=1, num_decoder_attention_heads=4, max_position_embeddings=64,
    )  # fmt: skip
    with pytest.raises(UnknownArchitecture, match="No attention module of ProphetNetForConditionalGeneration"):
        hc.locate(tf.ProphetNetForConditionalGeneration(config).eval())


def test_known_and_unknown_parts_of_one_model_are_both_told() -> None:
    config = tf.LEDConfig(
        vocab_size=99, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, attention_window=4,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="left out"):
        assert hc.locate(tf.LEDForConditionalGeneration(config).eval()).kinds == ("decoder", "cross")


def test_training_mode_survives_the_test_run() -> None:
    model = scaled(REMOVABLE["gemma"]()).train()
    model.model.layers[1].eval()
    before = [module.training for module in model.modules()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hc.locate(model)
    assert [module.training for module in model.modules()] == before


def test_a_layout_survives_json_and_refuses_nonsense() -> None:
    layout = Attention(classes=("A",), query="q", key="k", value="v", output="o", count=("n",), interleaved=True)
    import json

    assert Attention.from_plain(json.loads(json.dumps(layout.to_plain()))) == layout
    for bad in (
        None,
        {},
        {**layout.to_plain(), "query": 3},
        {**layout.to_plain(), "count": [1]},
        {**layout.to_plain(), "odd": 1},
    ):
        with pytest.raises(ValueError, match="layout"):
            Attention.from_plain(bad)


@pytest.mark.parametrize("name", ["XLM", "Flaubert"])
@pytest.mark.parametrize(("causal", "kind"), [(False, "encoder"), (True, "decoder")])
def test_the_config_of_xlm_says_which_stack_it_is(name: str, causal: bool, kind: str) -> None:
    """Its language models can generate, which a bidirectional one does too: it predicts the next mask."""
    config = getattr(tf, f"{name}Config")(
        vocab_size=99, emb_dim=32, n_layers=1, n_heads=4, max_position_embeddings=32, causal=causal
    )
    for head in ("WithLMHeadModel", "ForSequenceClassification"):
        model = getattr(tf, f"{name}{head}")(config).eval()
        assert hc.locate(model).kinds == (kind,)
        assert is_causal(model, kind) == causal
