"""How long a text a model can run on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import zoo
from headcount.sites.inputs import position_limit

# 64 rows each; RoBERTa's and MPNet's first two stand before the first token
LIMITS = {
    "bert": 64, "roberta": 62, "mpnet": 62, "deberta-v2": 64, "gpt2": 64, "gptj": 64, "opt": 64, "bart": 64,
    "marian": 64, "modernbert": None, "bloom": None, "llama": None, "t5": None, "m2m_100": None,
}  # fmt: skip


def runs(model: nn.Module, length: int) -> bool:
    inputs = {"input_ids": torch.full((1, length), 5)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = inputs["input_ids"]
    try:
        with torch.no_grad():
            model(**inputs)
    except (IndexError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize(("architecture", "limit"), LIMITS.items())
def test_a_model_runs_up_to_its_limit(architecture: str, limit: int | None) -> None:
    model = zoo.build(architecture, "eager")
    assert position_limit(model) == limit
    assert runs(model, limit or 80)
    assert limit is None or not runs(model, limit + 1)
