"""language-modelling: each text, token after token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.metrics import LOSS, PERPLEXITY
from headcount.record import Signature
from headcount.tasks.task import Batch, Quality, check_texts, chosen_metric, chunks, fingerprint, measured

METRICS = {"perplexity": PERPLEXITY, "loss": LOSS}


class LanguageModelling:
    """Plain texts; quality is perplexity, from each text's log-likelihood and number of predicted tokens."""

    name = "language-modelling"
    in_one_run = True

    def __init__(
        self,
        *,
        texts: Sequence[str],
        tokenizer: Any,
        batch_size: int = 16,
        max_length: int | None = None,
        metric: str = "perplexity",
    ) -> None:
        """metric: perplexity or loss, both per token."""
        self.metric = chosen_metric(metric, METRICS, self.name)
        self._texts = check_texts(texts)
        self._tokenizer = tokenizer
        self._chunks = list(chunks(len(self._texts), batch_size))
        self._max_length = max_length
        self.fingerprint = fingerprint(self._texts)

    def batches(self) -> Iterator[Batch]:
        options = {"truncation": True, "max_length": self._max_length} if self._max_length else {}
        for rows in self._chunks:
            encoded = self._tokenizer([self._texts[row] for row in rows], padding=True, return_tensors="pt", **options)
            mask_BT = encoded["attention_mask"]
            labels_BT = encoded["input_ids"].masked_fill(mask_BT == 0, -100)
            yield {"input_ids": encoded["input_ids"], "attention_mask": mask_BT, "labels": labels_BT}

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        return self._token_nll(model, batch).sum(-1)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.nll(model, batch).sum() / _predicted(batch).sum().clamp_min(1)

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: negative log-likelihood and predicted tokens of each text."""
        return np.stack([self.nll(model, batch).double().cpu().numpy(), _predicted(batch).sum(-1).numpy()], axis=1)

    def quality(self, model: nn.Module) -> Quality:
        found = measured(self, model, Signature(data=self.fingerprint, arguments={"metric": self.metric.name}))
        if not found.statistics[:, 1].any():
            raise UsageError("No text has two tokens: there is nothing to predict.")
        return found

    def _token_nll(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B, T-1]: of each token given those before it; 0 at padding."""
        device = next(model.parameters()).device
        inputs = {name: batch[name].to(device) for name in ("input_ids", "attention_mask")}
        logits_BTV: Tensor = model(**inputs).logits
        target_BT = batch["labels"].to(device).masked_fill(~_real(batch).to(device), -100)[:, 1:]
        scores_BVT = logits_BTV[:, :-1].float().transpose(1, 2)
        return nn.functional.cross_entropy(scores_BVT, target_BT, ignore_index=-100, reduction="none")


def _real(batch: Batch) -> Tensor:
    """[B, T]: tokens that have a token before them in their text (the first one is predicted from nothing)."""
    mask_BT: Tensor = batch["attention_mask"].bool()
    before_BT = torch.cat([torch.zeros_like(mask_BT[:, :1]), mask_BT[:, :-1]], dim=1)
    return mask_BT & before_BT


def _predicted(batch: Batch) -> Tensor:
    return _real(batch)[:, 1:]


TASK = LanguageModelling
