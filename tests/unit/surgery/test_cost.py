"""Costs, counted by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from headcount.sites.inputs import example_batch
from headcount.sites.running import eager_experts
from headcount.surgery.cost import head_parameters


def test_bert_by_hand(bert: nn.Module) -> None:
    found = hc.cost(bert, length=10)
    assert found.parameters == sum(p.numel() for p in bert.parameters())
    kind = found.kinds["encoder"]
    assert kind.num_heads == 12
    assert kind.parameters == 3 * 4 * (64 * 64 + 64)
    # four projections and two products of attention, each multiplication with its addition
    assert kind.flops == 3 * (4 * 2 * 10 * 64 * 64 + 2 * 2 * 10 * 10 * 64)
    assert found.cache_bytes == 0
    assert head_parameters(hc.locate(bert)[0]) == 3 * 16 * 65 + 16 * 64


def test_what_removal_saves_is_what_the_heads_had(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    small = hc.remove(bert, sites.mask(off=["encoder.0.1", "encoder.2.3"]))
    saved = hc.cost(bert).parameters - hc.cost(small).parameters
    assert saved == 2 * head_parameters(sites[0])
    assert hc.cost(small).kinds["encoder"].flops == hc.cost(bert).kinds["encoder"].flops * 10 // 12


def test_grouped_heads_and_cache(llama: nn.Module) -> None:
    sites = hc.locate(llama)
    assert head_parameters(sites[0]) == 2 * 16 * 64  # a query and its output columns; key and value are shared
    assert hc.cost(llama, length=10).cache_bytes == 3 * 2 * 10 * 2 * 16 * 4
    small = hc.remove(llama, sites.mask(off=["decoder.0.0", "decoder.0.1"]))
    assert hc.cost(small, length=10).cache_bytes == hc.cost(llama, length=10).cache_bytes * 5 // 6


def test_a_key_value_head_with_one_query_head_left_goes_with_it(llama: nn.Module) -> None:
    sites = hc.locate(llama)
    small = hc.remove(llama, sites.mask(off=[head for head in sites.heads if head.index % 2]))
    smaller = hc.remove(small, hc.locate(small).mask(off="decoder.0.0"))
    assert (
        head_parameters(hc.locate(small)[0]) == hc.cost(small).parameters - hc.cost(smaller).parameters == 4 * 16 * 64
    )


@pytest.mark.parametrize("name", ["llama", "marian"])
def test_the_length_is_that_of_the_batch_and_the_count_that_of_one_example(name: str) -> None:
    model = zoo.build(name).eval()
    batch = example_batch(model, batch=3, length=10, target=10, padded=False)
    assert hc.cost(model, batch=batch) == hc.cost(model, length=10)


def test_three_kinds(marian: nn.Module) -> None:
    found = hc.cost(marian, length=8)
    assert list(found.kinds) == ["encoder", "decoder", "cross"]
    assert len({kind.flops for kind in found.kinds.values()}) == 1  # source and target of equal length


def test_length_is_what_the_model_can_take() -> None:
    assert hc.cost(zoo.build("roberta"), length=1000).length == 64 - 2


def test_modes_and_backend_are_left_alone(llama: nn.Module) -> None:
    llama.train()
    hc.cost(llama)
    assert llama.training
    assert llama.config._attn_implementation == "sdpa"
    assert all(torch.isfinite(parameter).all() for parameter in llama.parameters())


@pytest.mark.parametrize("name", sorted(zoo.WRITERS - {"whisper"}))  # whisper reads as many frames as it has positions
def test_the_cache_is_what_generation_holds(name: str) -> None:
    model = zoo.build(name)
    batch = example_batch(model, batch=1, length=12, target=12, padded=False)
    with torch.no_grad():
        cache = model(**batch, use_cache=True).past_key_values
    parts = [cache.self_attention_cache, cache.cross_attention_cache] if hasattr(cache, "is_updated") else [cache]
    held = sum(layer.keys.nbytes + layer.values.nbytes for part in parts for layer in part.layers)
    assert hc.cost(model, length=12).cache_bytes == held


def test_the_cache_of_a_pruned_model_with_windows() -> None:
    model = zoo.build("gemma2")  # windows of 8 tokens in layers 0 and 2
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.0.*"]))
    assert hc.cost(small, length=12).cache_bytes == 2 * 4 * (7 * 1 + 12 * 2 * 16 + 7 * 2 * 16)


_MIXTURE = {
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 256,
}
_EXPERTS = {"num_experts": 4, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 40, "pad_token_id": 0}


def mixture(family: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(tf, f"{family}Config")(**_MIXTURE, **settings)
    return getattr(tf, f"{family}ForCausalLM")(config).eval()


def test_experts_by_hand() -> None:
    found = hc.cost(mixture("Mixtral", num_local_experts=4), length=128)
    # queries and output, keys and values of 2 heads of 8, two products of attention
    attention = 2 * 128 * (2 * 64 * 64 + 2 * 64 * 16) + 2 * 2 * 128 * 128 * 64
    experts = 2 * 128 * 2 * 3 * 64 * 112  # two of each token, three matrices
    assert found.flops == 3 * (attention + experts + 2 * 128 * 64 * 4) + 2 * 128 * 64 * 99 == 55_296_000
    assert found.kinds["decoder"].flops == 3 * attention


@pytest.mark.parametrize("implementation", ["grouped_mm", "batched_mm", "eager"])
@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("Mixtral", {"num_local_experts": 4}),
        ("Qwen2Moe", _EXPERTS),
        ("Qwen3Moe", {**_EXPERTS, "head_dim": 8}),
        ("Olmoe", {"num_experts": 4, "pad_token_id": 0}),
    ],
)
def test_experts_count_however_the_model_computes_them(
    family: str, settings: dict[str, Any], implementation: str
) -> None:
    model = mixture(family, **settings)
    model.set_experts_implementation("eager")
    plain = hc.cost(model, length=20)
    model.set_experts_implementation(implementation)
    assert hc.cost(model, length=20) == plain
    assert plain.flops is not None
    layers = model.model.layers
    one_expert = 2 * 20 * sum(weights[0].numel() for layer in layers for weights in layer.mlp.experts.parameters())
    model.config.num_experts_per_tok = 1
    for module in model.modules():  # routers read their config once
        if hasattr(module, "top_k"):
            module.top_k = 1
    assert hc.cost(model, length=20).flops == plain.flops - one_expert


def test_the_implementation_of_experts_is_left_alone() -> None:
    model = mixture("Mixtral", num_local_experts=4)
    settings, weights = copy.deepcopy(vars(model.config)), copy.deepcopy(model.state_dict())
    hc.cost(model)
    with pytest.raises(RuntimeError):
        hc.cost(model, batch={"input_ids": torch.ones(1, 5, 5, dtype=torch.long)})
    assert vars(model.config) == settings
    assert settings["_experts_implementation_internal"] == "grouped_mm"
    assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())


def test_each_config_has_its_own_implementation_of_experts_afterwards() -> None:
    first, second = mixture("Mixtral", num_local_experts=4), mixture("Olmoe", num_experts=4, pad_token_id=0)
    second.set_experts_implementation("batched_mm")
    both = nn.ModuleList([first, second])

    def interrupted() -> None:
        with eager_experts(both):
            assert [model.config._experts_implementation for model in both] == ["eager", "eager"]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [model.config._experts_implementation for model in both] == ["grouped_mm", "batched_mm"]
