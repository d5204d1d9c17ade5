"""New random weights: nothing of what a model knew may be left in a control that begins from scratch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import headcount as hc
import laboratory
import zoo
from headcount.training.transformer import forget


def test_a_pruned_model_can_forget(bert: nn.Module) -> None:
    small = hc.remove(bert, hc.locate(bert).mask(off=["encoder.0.0", "encoder.1.*"]))
    shapes = {name: value.shape for name, value in small.state_dict().items()}
    before = small.state_dict()["classifier.weight"].clone()
    forget(small, seed=1)
    assert {name: value.shape for name, value in small.state_dict().items()} == shapes
    assert not torch.equal(before, small.state_dict()["classifier.weight"])


def test_a_translation_model_forgets_every_weight(tmp_path: Path) -> None:
    model = laboratory.model(laboratory.vocabulary(tmp_path))
    positions = {name for name, _ in model.named_parameters() if "embed_positions" in name}  # sinusoids, not learned
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
        model.final_logits_bias.fill_(7.0)  # a buffer
    forget(model, seed=0)
    assert not model.final_logits_bias.any()
    assert {name for name, value in model.named_parameters() if (value == 7.0).any()} <= positions


@pytest.mark.parametrize("name", ["marian", "pegasus"])
def test_untied_embeddings_are_forgotten_too(name: str) -> None:
    whole = zoo.build(name)
    separate = {"share_encoder_decoder_embeddings": False} if name == "marian" else {}
    config = type(whole.config)(**{**whole.config.to_dict(), "tie_word_embeddings": False, **separate})
    model = type(whole)(config)
    assert model.lm_head.weight is not model.model.decoder.embed_tokens.weight
    positions = {name for name, _ in model.named_parameters() if "embed_positions" in name}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    forget(model, seed=0)
    assert {name for name, value in model.named_parameters() if (value == 7.0).any()} <= positions


def test_weights_on_another_device_are_drawn_with_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the generator of that device, which `torch.manual_seed` sets; that of the CPU would leave it as it is."""
    model, seeds = laboratory.model(laboratory.vocabulary(tmp_path)).to("meta"), list[int]()
    monkeypatch.setattr(torch, "manual_seed", seeds.append)
    forget(model, seed=3)
    assert seeds == [3]
