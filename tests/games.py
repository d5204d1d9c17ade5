"""Games of heads: a task whose loss is any function of how far each head is on, on a live model of one layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

import headcount as hc


def one_layer() -> nn.Module:
    """Four heads: encoder.0.0 to encoder.0.3."""
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 16}
    return BertModel(BertConfig(vocab_size=50, **size)).eval().double()


def game(model: nn.Module, loss: Callable[[Tensor], Tensor], *, rows: int = 6, batches: int = 1) -> Any:
    """loss: [B, H] how far each head is on, 1 as in the plain model -> [B]."""
    generator = torch.Generator().manual_seed(1)
    every = [{"input_ids": torch.randint(0, 50, (rows, 5), generator=generator)} for _ in range(batches)]

    def outputs(live: nn.Module, batch: Any) -> Tensor:
        with hc.tapped(live, "outputs") as taps:
            live(**batch)
        return taps["encoder.0"]

    def read(batch: Any) -> tuple[Tensor, Tensor]:
        return batch["input_ids"], outputs(model, batch)

    with torch.no_grad():
        plain = {tuple(row.tolist()): out for batch in every for row, out in zip(*read(batch), strict=True)}

    def nll(live: nn.Module, batch: Any) -> Tensor:
        reference_BTHD = torch.stack([plain[tuple(row.tolist())] for row in batch["input_ids"]])
        on_BH = (outputs(live, batch) * reference_BTHD).sum((1, 3)) / reference_BTHD.square().sum((1, 3))
        return loss(on_BH)

    return hc.task.of(every, nll=nll)
