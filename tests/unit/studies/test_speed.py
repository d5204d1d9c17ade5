"""Speed of models whose cache forgets: sliding windows."""

from __future__ import annotations

import torch
from transformers import MistralConfig, MistralForCausalLM

from headcount.studies.speed import Bench, speed


def test_tokens_are_written_beyond_a_sliding_window() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = MistralForCausalLM(MistralConfig(vocab_size=50, num_key_value_heads=1, sliding_window=8, **sizes)).eval()
    record = speed({"model": model}, bench=Bench(batches=(1,), lengths=(16,), written=3, repeats=3))
    assert [row.what for row in record.parts.rows] == ["reading", "writing"]
