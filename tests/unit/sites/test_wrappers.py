"""Wrapped models: what is measured of a model is the same inside DataParallel, torch.compile or a user's module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import headcount as hc
import zoo
from headcount.hooks import configured_module
from headcount.sites.causality import is_causal
from headcount.sites.fingerprint import config_hash, weight_hash


class Own(nn.Module):
    """A user's module around a model, with settings of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.config = inner, {"rate": 0.1}

    def forward(self, **batch: Any) -> Any:
        return self.inner(**batch)


def _compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "data parallel": nn.DataParallel,
    "distributed": nn.parallel.DistributedDataParallel,
    "own": Own,
    "own in data parallel": lambda model: nn.DataParallel(Own(model)),
}


@pytest.fixture(autouse=True, scope="module")
def _one_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place = tmp_path_factory.mktemp("processes") / "store"
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _translation() -> tuple[nn.Module, dict[str, Tensor]]:
    """A model and a batch with padding and special tokens on both sides."""
    model, generator = zoo.build("bart", "eager"), torch.Generator().manual_seed(0)
    source = torch.randint(4, 99, (3, 9), generator=generator)
    real = torch.arange(9) < torch.tensor([[9], [5], [7]])
    source[:, 0] = model.config.bos_token_id
    labels = torch.randint(4, 99, (3, 6), generator=generator)
    labels[0, 3], labels[0, 4:] = model.config.eos_token_id, -100
    return model, {"input_ids": source.where(real, 0), "attention_mask": real.long(), "labels": labels}


def _nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    logits_BTV = model(**batch).logits
    return nn.functional.cross_entropy(logits_BTV.transpose(1, 2), batch["labels"], reduction="none").sum(1)


@pytest.mark.parametrize("name", WRAPPERS)
def test_padding_and_special_tokens_are_left_out(name: str) -> None:
    model, batch = _translation()
    task, mask = hc.task.of([batch], nll=_nll), hc.locate(model).mask(off=["decoder.0.0", "encoder.0.1"])

    def numbers(model: nn.Module) -> dict[str, np.ndarray]:
        with torch.no_grad(), hc.masked(model, mask, replace="mean", calibration=[batch]):
            losses = _nll(model, batch).numpy()
        bias = hc.compensate(model, mask, task, "bias").projections["decoder", 0].bias_O
        assert bias is not None
        return {
            "confidence": hc.score("confidence", model, task).numbers(),
            "gradient": hc.score("gradient", model, task, granularity="token").numbers(),
            "patching": hc.score("attribution-patching", model, task, replace="mean").numbers(),
            "losses": losses,
            "bias": bias.numpy(),
        }

    plain, wrapped = numbers(model), numbers(WRAPPERS[name](model))
    for what, values in plain.items():
        np.testing.assert_allclose(wrapped[what], values, rtol=1e-5, atol=1e-6, err_msg=what)


def test_confidence_of_a_wrapped_model_by_hand() -> None:
    model, batch = _translation()
    found = hc.score("confidence", nn.DataParallel(model), hc.task.of([batch], nll=_nll))["encoder.0.0"]
    with torch.no_grad():
        attention_BQK = model(**batch, output_attentions=True).encoder_attentions[0][:, 0]
    tokens_BT = (batch["attention_mask"] == 1) & (batch["input_ids"] > 2)
    largest_BQ = attention_BQK.masked_fill(~tokens_BT[:, None], 0).amax(-1)
    assert found == pytest.approx(float(largest_BQ[tokens_BT].mean()), abs=1e-6)


@pytest.mark.parametrize("wrap", [nn.DataParallel, Own, _compiled])
def test_hashes_and_random_numbers_are_those_of_the_model(bert: nn.Module, wrap: Callable[..., nn.Module]) -> None:
    wrapped = wrap(bert)
    assert configured_module(wrapped) is bert
    assert weight_hash(wrapped) == weight_hash(bert)
    assert config_hash(wrapped) == config_hash(bert)
    assert hc.score("random", wrapped, None) == hc.score("random", bert, None)
    assert is_causal(wrapped) == is_causal(bert)


def test_weights_beside_the_wrapped_model_are_hashed_too(bert: nn.Module) -> None:
    own = Own(bert)
    own.head = nn.Linear(2, 2)
    before = weight_hash(own)
    nn.init.zeros_(own.head.weight)
    assert len({before, weight_hash(own), weight_hash(bert)}) == 3


@pytest.mark.parametrize("wrap", [nn.DataParallel, Own])
def test_roles_can_be_played_in_a_wrapped_model(bert: nn.Module, wrap: Callable[..., nn.Module]) -> None:
    batch, wrapped = {"input_ids": torch.arange(4, 18).reshape(2, 7)}, wrap(bert)
    logits = []
    for model in (bert, wrapped):
        with torch.no_grad(), hc.played(model, {"encoder.0.0": "positional -1"}):
            logits.append(model(**batch).logits)
    assert torch.equal(*logits)


def _one_layer() -> nn.Module:
    """Compilation takes as long for every layer."""
    model = zoo.build("bert")
    model.bert.encoder.layer = model.bert.encoder.layer[:1]
    return model


def test_a_compiled_model_is_read_as_it_is() -> None:
    bert = _one_layer()
    batch = {"input_ids": torch.arange(4, 18).reshape(2, 7)}
    task = hc.task.of([batch], nll=lambda model, batch: model(**batch).logits.square().sum(1))
    compiled = _compiled(bert)
    assert hc.score("confidence", compiled, task) == hc.score("confidence", bert, task)
    means, expected = hc.mean_outputs(compiled, [batch]), hc.mean_outputs(bert, [batch])
    assert all(torch.equal(means[key], expected[key]) for key in expected)


def test_gates_of_a_compiled_model() -> None:
    losses, bert = [], _one_layer()
    for model in (bert.train(), _compiled(bert)):
        with hc.gated(model, seed=1) as gates, torch.random.fork_rng():
            torch.manual_seed(0)
            losses.append(model(input_ids=torch.arange(4, 18).reshape(2, 7)).logits.square().sum())
            losses[-1].backward()
        assert gates.logits_G.grad is not None
    assert torch.equal(*losses)
