"""Vitals: against logits computed by hand, and on a layer whose attention was made to saturate."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import laboratory
from headcount.tasks.translation import Translation
from headcount.training.vitals import saturated, vitals


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Translation]:
    tokenizer = laboratory.vocabulary(tmp_path_factory.mktemp("vitals") / "v")
    pairs = laboratory.parallel()["dev"][:5]
    return laboratory.model(tokenizer), Translation(**pairs, tokenizer=tokenizer)


def test_against_logits_by_hand(subject: tuple[Any, Translation]) -> None:
    model, task = subject
    spreads, ends, largest = [], [], []
    for ids in task.source_ids:
        with torch.no_grad():
            output = model.model.encoder(torch.tensor([list(ids)]), output_hidden_states=True)
            layer = model.model.encoder.layers[1]
            hidden = layer.self_attn_layer_norm(output.hidden_states[1])
            query, key = layer.self_attn.q_proj(hidden)[0], layer.self_attn.k_proj(hidden)[0]
        for head in range(4):
            part = slice(8 * head, 8 * head + 8)
            logits = query[:, part] @ key[:, part].T * 8**-0.5
            for row in logits:
                spreads.append(float(row.std()))
                ends.append(float(row.softmax(0)[-1]))
                largest.append(float(row.softmax(0).max()))
    # each sentence counts once
    weights = torch.tensor([1 / len(ids) for ids in task.source_ids for _ in range(4 * len(ids))])
    expected = [float((torch.tensor(values) * weights).sum() / weights.sum()) for values in (spreads, ends, largest)]
    measured = vitals(model, task)["encoder.1"]
    assert [measured[name] for name in ("spread", "end", "confidence")] == pytest.approx(expected, rel=1e-4)


def test_a_saturated_layer_is_named(subject: tuple[Any, Translation]) -> None:
    model, task = subject
    assert saturated(vitals(model, task)) == []
    weight = model.model.encoder.layers[0].self_attn.q_proj.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight.mul_(100)
    assert saturated(vitals(model, task)) == ["encoder.0"]
    with torch.no_grad():
        weight.copy_(before)


def test_the_model_stays_as_it_was(subject: tuple[Any, Translation]) -> None:
    model, task = subject
    before = {name: value.clone() for name, value in model.state_dict().items()}
    vitals(model, task)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
