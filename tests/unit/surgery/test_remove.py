"""Removal: what it refuses, what it keeps, and that the result lives on like any model."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from behaviour import difference, hooks, identical, observe, outputs, uneven, weights
from headcount.errors import MaskError, NotRemovable, UsageError, VerificationError
from headcount.sites.inputs import example_batch

REALISTIC = {
    "BERT-base": lambda: tf.BertForSequenceClassification(tf.BertConfig()),
    "GPT-2 small": lambda: tf.GPT2LMHeadModel(tf.GPT2Config()),
    "Marian 6+6": lambda: tf.MarianMTModel(
        tf.MarianConfig(
            vocab_size=8000, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
            decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, pad_token_id=0, eos_token_id=2,
            decoder_start_token_id=2, forced_eos_token_id=None,
        )
    ),
    "Llama, 16 heads on 4": lambda: tf.LlamaForCausalLM(
        tf.LlamaConfig(
            vocab_size=8000, hidden_size=1024, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=16,
            num_key_value_heads=4,
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "GPT-2 small" else [pytest.mark.slow]) for name in REALISTIC]
)
def test_realistic_sizes(name: str) -> None:
    """A third of the heads gone unevenly, one layer empty: masked equals removed, forward and in greedy text."""
    torch.manual_seed(0)
    model = REALISTIC[name]().eval()
    sites = hc.locate(model)
    off = [head for head in sites.heads if (head.index * 7 + head.layer * 3) % 3 == 0 or head.layer == 2]
    mask = sites.mask(off=off)
    with hc.masked(model, mask):
        expected = observe(model)
    small = hc.remove(model, mask, inplace=True, verify=False)
    assert difference(expected, observe(small)) <= 1e-5
    assert len(hc.locate(small).heads) == len(mask.kept)


def test_in_place_and_not(bert: nn.Module) -> None:
    mask, before = hc.locate(bert).mask(off="encoder.0.1"), weights(bert)
    small = hc.remove(bert, mask)
    assert small is not bert
    assert identical(weights(bert), before)
    assert hc.remove(bert, mask, inplace=True) is bert
    assert identical(weights(bert), weights(small))


def test_a_mask_of_ones_removes_nothing(bert: nn.Module) -> None:
    same = hc.remove(bert, hc.locate(bert).mask())
    assert identical(weights(same), weights(bert))
    assert not hasattr(same.config, "head_pruning")


def test_uneven_groups_never_grow_the_cache(llama: nn.Module) -> None:
    """Query heads 0, 1, 3 on key/value heads 0 and 1: the cache holds two heads, not three."""
    small = hc.remove(llama, hc.locate(llama).mask(off=["decoder.0.2", "decoder.1.0", "decoder.1.1"]))
    shapes = [layer.keys.shape[1] for layer in small(torch.tensor([[3, 4, 5]])).past_key_values.layers]
    assert shapes == [2, 1, 2]
    assert [site.kv_heads for site in hc.locate(small)] == [2, 1, 2]
    assert [site.kv_kept for site in hc.locate(small)] == [(0, 1), (1,), (0, 1)]


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_caches(llama: nn.Module, cache: str) -> None:
    mask = hc.locate(llama).mask(off=["decoder.0.*", "decoder.1.2"])
    small = hc.remove(llama, mask)
    options = {"max_new_tokens": 6, "do_sample": False, "cache_implementation": cache, "pad_token_id": 0}
    batch = example_batch(llama)
    with hc.masked(llama, mask):
        expected = llama.generate(**batch, **options)
    assert torch.equal(small.generate(**batch, **options), expected)


def test_backend_can_still_be_changed(llama: nn.Module) -> None:
    """Uneven groups read the backend live: sdpa, eager and back give the same."""
    small = hc.remove(llama, hc.locate(llama).mask(off="decoder.0.2"))
    batch = example_batch(small, padded=False)  # what stands at padding is the backend's own affair
    before = outputs(small, batch)["logits"]
    small.set_attn_implementation("eager")
    torch.testing.assert_close(outputs(small, batch)["logits"], before, rtol=0, atol=1e-5)
    attention = small(torch.tensor([[3, 4]]), output_attentions=True).attentions
    assert [layer.shape[1] for layer in attention] == [3, 4, 4]


# Layers of the first five are cut like those of llama, gpt2 and t5; t5 itself takes as long as all others.
_LIKE_OTHERS = ("phi3", "bert", "mpnet", "bloom", "marian", "t5")


@pytest.mark.parametrize(
    "architecture",
    ["gpt2", "llama", *(pytest.param(name, marks=pytest.mark.slow) for name in _LIKE_OTHERS)],
)
def test_pruned_models_compile(architecture: str) -> None:
    """One graph, no breaks, with uneven layers and an empty one."""
    model = zoo.build(architecture, zoo.backends(architecture)[-1])
    sites = hc.locate(model)
    small = hc.remove(model, sites.mask(off=[*uneven(sites), f"{sites[0].kind}.0.*"]), verify=False)
    options = {} if architecture in ("bert", "mpnet", "t5", "marian") else {"use_cache": False}
    batch = {**example_batch(small), **options}
    torch._dynamo.reset()
    with torch.no_grad():
        expected = small(**batch).logits
        found = torch.compile(small, backend="aot_eager", fullgraph=True)(**batch).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("architecture", ["bert", "llama"])
def test_pruned_models_export(architecture: str) -> None:
    model = zoo.build(architecture)
    sites = hc.locate(model)
    small = hc.remove(model, sites.mask(off=[*uneven(sites), f"{sites[0].kind}.0.*"]))
    tokens = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 10]])
    options = {"use_cache": False} if architecture == "llama" else {}
    exported = torch.export.export(small, (tokens,), options, strict=False)
    torch.testing.assert_close(exported.module()(tokens, **options).logits, small(tokens, **options).logits)


def test_dropout_and_gradients_go_on(bert: nn.Module) -> None:
    bert.bert.encoder.layer[0].attention.self.query.weight.requires_grad_(False)
    small = hc.remove(bert.train(), hc.locate(bert).mask(off="encoder.0.1"))
    attention = small.bert.encoder.layer[0].attention.self
    assert small.training
    assert attention.training
    assert not attention.query.weight.requires_grad
    assert attention.key.weight.requires_grad


def test_lora_is_masked_but_merged_before_removal(llama: nn.Module) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    wrapped = peft.get_peft_model(llama, peft.LoraConfig(target_modules=["q_proj", "o_proj"], init_lora_weights=False))
    wrapped.eval()
    sites = hc.locate(wrapped)
    mask = sites.mask(off=["decoder.1.1", "decoder.2.0"])
    with hc.masked(wrapped, mask):
        expected = wrapped(torch.tensor([[3, 4, 5]])).logits
    with pytest.raises(NotRemovable, match="merge_and_unload"):
        hc.remove(wrapped, mask)
    assert hooks(wrapped) == 0
    merged = hc.remove(wrapped.merge_and_unload(), mask)
    torch.testing.assert_close(merged(torch.tensor([[3, 4, 5]])).logits, expected, rtol=0, atol=1e-4)


def test_quantised_weights_are_masked_but_not_cut(bert: nn.Module) -> None:
    class Linear8bit(nn.Linear):
        """As quantisation libraries do it: a linear layer with integer weights."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.linear(x, self.weight.to(x.dtype) / 100, self.bias)

    for layer in bert.bert.encoder.layer:
        old = layer.attention.self.query
        new = Linear8bit(64, 64)
        new.weight = nn.Parameter((old.weight.data * 100).to(torch.int8), requires_grad=False)
        layer.attention.self.query = new
    before = outputs(bert)
    mask = hc.locate(bert).mask(off="encoder.0.0")
    with hc.masked(bert, mask):
        assert not identical(outputs(bert), before)
    with pytest.raises(NotRemovable, match="dequantize"):
        hc.remove(bert, mask)


def test_wrong_masks(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    with pytest.raises(UsageError, match="HeadGrid"):
        hc.remove(bert, torch.ones(12))  # type: ignore[arg-type]
    with pytest.raises(MaskError, match=r"0\.5"):
        hc.remove(bert, sites.grid(1.0).replace({"encoder.0.0": 0.5}))


def test_verification_notices_a_broken_removal(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """If surgery cut the wrong head, remove would raise, not return."""
    import headcount.surgery.remove as module

    def wrong(model: nn.Module, plan: list[dict[str, Any]]) -> None:
        original(model, [{**site, "heads": [0, 1, 3], "kv": [0, 1, 3]} for site in plan])  # the plan said 0, 2, 3
        for site in plan:
            model.get_submodule(site["path"]).headcount |= {"heads": site["heads"], "kv": site["kv"]}

    original = module.reshape
    monkeypatch.setattr(module, "reshape", wrong)
    with pytest.raises(VerificationError, match=r"encoder\.0: the output projection.*head encoder\.0\.2"):
        hc.remove(bert, hc.locate(bert).mask(off="encoder.0.1"))


def test_a_copy_of_a_pruned_model_keeps_its_own_config(llama: nn.Module) -> None:
    small = hc.remove(llama, hc.locate(llama).mask(off="decoder.0.2"))
    twin = copy.deepcopy(small)
    twin.set_attn_implementation("eager")
    assert small.config._attn_implementation == "sdpa"
    assert twin.model.layers[0].self_attn.config.base is twin.config


def test_meta_models_are_cut_without_verification() -> None:
    with torch.device("meta"):
        model = tf.LlamaForCausalLM(tf.LlamaConfig(num_hidden_layers=2))
    small = hc.remove(model, hc.locate(model).mask(off="decoder.0.*"), inplace=True)
    assert small.model.layers[0].self_attn.q_proj.weight.shape == (0, 4096)


def test_not_inside_a_block(bert: nn.Module) -> None:
    """A copy made inside a block would carry the block's hooks for good."""
    sites = hc.locate(bert)
    for probe in (hc.masked(bert, sites.mask(off="encoder.1.0")), hc.tapped(bert, "max")):
        with probe, pytest.raises(UsageError, match="exit its with block"):
            hc.remove(bert, sites.mask(off="encoder.0.0"))
    hc.remove(bert, sites.mask(off="encoder.0.0"))


def test_things_that_are_no_models_and_no_masks(bert: nn.Module) -> None:
    with pytest.raises(UsageError, match="Expected a PyTorch model; got str"):
        hc.locate("bert")  # type: ignore[arg-type]
    for mask in (["encoder.0.0"], "encoder.0.0", {"encoder.0.0": 0}, None):
        with pytest.raises(MaskError, match="A mask is a HeadGrid"), hc.masked(bert, mask):  # type: ignore[arg-type]
            pass
    with pytest.raises(UsageError, match="at least 1"):
        hc.cost(bert, length=0)


@pytest.mark.parametrize(
    ("architecture", "off"),
    [
        ("t5", ["encoder.0.0", "decoder.1.*"]),
        ("mpnet", ["encoder.0.0"]),
        ("bloom", ["decoder.0.1"]),
        ("bert", ["encoder.1.*"]),
        ("llama", ["decoder.0.0"]),
    ],
)
def test_a_pruned_model_can_be_pickled(architecture: str, off: list[str]) -> None:
    """As multiprocessing and `torch.save(model)` do; headcount itself reads no pickle."""
    model = zoo.build(architecture)
    small = hc.remove(model, hc.locate(model).mask(off=off))
    again = pickle.loads(pickle.dumps(small))
    assert identical(outputs(again), outputs(small))
    assert [type(module) for module in again.modules()] == [type(module) for module in small.modules()]
    assert hc.locate(again).mask() == hc.locate(small).mask()


def test_adapters_on_a_layer_without_heads() -> None:
    peft = pytest.importorskip("peft")
    model = zoo.build("gpt2")
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.1.*"]))
    expected = outputs(small)
    config = peft.LoraConfig(target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)
    adapted = peft.get_peft_model(small, config).eval()
    batch = example_batch(model)
    with torch.no_grad():
        assert torch.equal(adapted(**batch).logits, expected["logits"]), "new adapters add nothing"
    adapted.train()(**batch).logits.sum().backward()
