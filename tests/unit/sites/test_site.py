"""Sites: names, wildcards, masks, towers, wrappers."""

from __future__ import annotations

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from headcount.errors import ModelError, UnknownArchitecture, UnknownHead, UsageError
from headcount.sites.attention import Attention, Family
from headcount.sites.locate import _by_class, families


def test_what_a_site_says(llama: nn.Module) -> None:
    sites = hc.locate(llama)
    site = sites[0]
    assert (site.kind, site.layer, site.num_heads, site.heads, site.head_dim, site.kv_heads) == (
        "decoder",
        0,
        4,
        (0, 1, 2, 3),
        16,
        2,
    )
    assert sites["decoder.1"] is sites["decoder", 1] is sites[1]
    assert sites.kinds == ("decoder",)
    assert [str(head) for head in sites.heads[:2]] == ["decoder.0.0", "decoder.0.1"]
    with pytest.raises(UnknownHead, match=r"decoder\.7"):
        sites["decoder.7"]


def test_masks_by_name(marian: nn.Module) -> None:
    sites = hc.locate(marian)
    assert sites.kinds == ("encoder", "decoder", "cross")
    mask = sites.mask(off=["encoder.0.3"])
    assert mask["encoder.0.3"] == 0
    assert len(mask.kept) == 35
    assert len(sites.mask(keep="cross.*").kept) == 12
    assert len(sites.mask(off=["encoder.1.*", "decoder.?.0"]).kept) == 36 - 4 - 3
    assert len(sites.mask(keep=[]).kept) == 0
    with pytest.raises(UsageError, match="not both"):
        sites.mask(off=["encoder.0.0"], keep=["encoder.0.1"])
    for name in ("encoder.0.4", "encoder.3.0", "text.0.0", "vision.*"):
        with pytest.raises(UnknownHead):
            sites.mask(off=name)


def test_a_removed_head_is_named_as_removed(bert: nn.Module) -> None:
    small = hc.remove(bert, hc.locate(bert).mask(off="encoder.0.1"))
    with pytest.raises(UnknownHead, match=r"was removed .* \[0, 2, 3\]"):
        hc.locate(small).mask(off="encoder.0.1")


@pytest.mark.parametrize(
    "build",
    [
        tf.BertModel,
        tf.BertForMaskedLM,
        tf.BertForQuestionAnswering,
        lambda c: tf.BertModel(c).encoder,
    ],
    ids=["bare", "masked language model", "question answering", "encoder alone"],
)
def test_task_heads_make_no_difference(build: object) -> None:
    config = tf.BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=50
    )
    sites = hc.locate(build(config))  # type: ignore[operator]
    assert [site.name for site in sites] == ["encoder.0", "encoder.1"]


def test_bert_as_a_decoder_and_as_both() -> None:
    small = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 50,
    }
    decoder = tf.BertLMHeadModel(tf.BertConfig(**small, is_decoder=True, add_cross_attention=True))
    assert hc.locate(decoder).kinds == ("decoder", "cross")
    both = tf.EncoderDecoderConfig.from_encoder_decoder_configs(tf.BertConfig(**small), tf.BertConfig(**small))
    model = tf.EncoderDecoderModel(both).eval()
    sites = hc.locate(model)
    assert sites.kinds == ("encoder", "decoder", "cross")
    assert len(sites) == 6


def test_gpt2_with_cross_attention_is_cut_and_agrees() -> None:
    """GPT-2's cross attention has a query of its own beside a fused key and value."""
    torch.manual_seed(0)
    config = tf.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=50, n_positions=32, add_cross_attention=True)
    model = tf.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(2.5)
    sites = hc.locate(model)
    assert sites.kinds == ("decoder", "cross")
    batch = {"input_ids": torch.tensor([[3, 4, 5]]), "encoder_hidden_states": torch.randn(1, 6, 64)}
    for off in (["cross.0.1", "cross.0.2", "decoder.1.0"], ["cross.1.*"]):
        mask = sites.mask(off=off)
        small = hc.remove(model, mask)
        assert hc.verify(model, small, mask, batch=batch) <= 1e-5


def test_one_tower_alone_is_an_encoder() -> None:
    clip = zoo.build("clip")
    assert hc.locate(clip).kinds == ("text", "vision")
    assert hc.locate(clip.vision_model).kinds == ("encoder",)


def test_albert_is_one_site() -> None:
    sites = hc.locate(zoo.build("albert"))
    assert [site.name for site in sites] == ["encoder.0"]


def test_a_model_without_heads_says_how_to_add_a_family() -> None:
    with pytest.raises(UnknownArchitecture, match="add-a-family"):
        hc.locate(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))


def test_bloom_with_sliced_projection_is_refused() -> None:
    bloom = zoo.build("bloom", "eager")
    for block in bloom.transformer.h:
        block.self_attention.pretraining_tp, block.self_attention.slow_but_exact = 2, True
    with pytest.raises(ModelError, match="slow_but_exact"):
        hc.locate(bloom)


def test_a_family_of_ones_own() -> None:
    """A class no family knows, described in a few lines, is found."""

    class OddAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask, self.look, self.give, self.join = (nn.Linear(8, 8) for _ in range(4))
            self.head_dim = 4

    described = Attention(classes=("OddAttention",), query="ask", key="look", value="give", output="join")
    model = nn.ModuleList([OddAttention(), OddAttention()])
    with pytest.raises(UnknownArchitecture):
        hc.locate(model)
    hc.add_family("odd", Family(attentions=(described,), architectures=("odd",)))
    try:
        assert [str(head) for head in hc.locate(model).heads] == [
            "encoder.0.0",
            "encoder.0.1",
            "encoder.1.0",
            "encoder.1.1",
        ]
    finally:
        families._added.clear()
        _by_class.cache_clear()


def test_names_of_private_towers_can_be_read() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._query, self._document = zoo.build("bert").bert, zoo.build("bert").bert

    sites = hc.locate(Pair())
    assert sites.kinds == ("document", "query")
    assert hc.HeadGrid.from_json(sites.mask(off="query.0.1").to_json()) == sites.mask(off="query.0.1")
