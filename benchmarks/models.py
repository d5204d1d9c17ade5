"""The models that benchmarks run: real shapes, random weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import transformers
from torch import Tensor, nn

LAYERS, HEADS, HEAD_DIM, WIDTH = 12, 12, 64, 768


def bert_base() -> nn.Module:
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(transformers.BertConfig()).eval()


def narrow_bert(heads: Mapping[int, int]) -> nn.Module:
    """BERT-base built from scratch with narrower projections: `heads` of layer number."""
    model = bert_base()
    for number, layer in enumerate(model.bert.encoder.layer):  # type: ignore[union-attr, arg-type]
        width, attention = heads[number] * HEAD_DIM, layer.attention
        attention.self.query, attention.self.key, attention.self.value = (nn.Linear(WIDTH, width) for _ in range(3))
        attention.self.num_attention_heads, attention.self.all_head_size = heads[number], width
        attention.output.dense = nn.Linear(width, WIDTH)
    return model.eval()


def tokens(batch: int, length: int) -> dict[str, Tensor]:
    ids = torch.randint(1000, 30_000, (batch, length), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
