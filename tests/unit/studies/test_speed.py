"""Speed of models with few positions, and of those whose cache forgets: sliding windows."""

from __future__ import annotations

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

import zoo
from headcount.errors import UsageError
from headcount.studies.speed import Bench, speed


def test_tokens_are_written_beyond_a_sliding_window() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = MistralForCausalLM(MistralConfig(vocab_size=50, num_key_value_heads=1, sliding_window=8, **sizes)).eval()
    record = speed({"model": model}, bench=Bench(batches=(1,), lengths=(16,), written=3, repeats=3))
    assert [row.what for row in record.parts.rows] == ["reading", "writing"]


@pytest.mark.parametrize("architecture", ["gpt2", "gpt_neo", "gptj", "opt"])
def test_what_is_written_has_positions_after_a_text_of_all_positions(architecture: str) -> None:
    model = zoo.build(architecture)  # of 64 positions
    record = speed({"model": model}, bench=Bench(batches=(1,), lengths=(32, 64, 128), written=3, repeats=1, warmup=0))
    assert [(row.what, row.length) for row in record.parts.rows] == [
        (what, length) for length in (32, 61) for what in ("reading", "writing")
    ]
    with pytest.raises(UsageError, match="model has too few positions to write 64 tokens"):
        speed({"model": model}, bench=Bench(batches=(1,), lengths=(8,), written=64, repeats=1))


def test_a_decoder_beside_an_encoder_has_positions_of_its_own() -> None:
    model = zoo.build("bart")
    record = speed({"model": model}, bench=Bench(batches=(1,), lengths=(64,), written=63, repeats=1, warmup=0))
    assert {row.length for row in record.parts.rows} == {64}
    with pytest.raises(UsageError, match="model has too few positions to write 64 tokens"):
        speed({"model": model}, bench=Bench(batches=(1,), lengths=(8,), written=64, repeats=1))
