"""classification: a label for each text, or for each pair of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.metrics import ACCURACY, F1, MATTHEWS, confusion
from headcount.record import Signature
from headcount.tasks.task import Batch, Quality, check_texts, chosen_metric, chunks, fingerprint, measured

METRICS = {"accuracy": ACCURACY, "f1": F1, "matthews": MATTHEWS}


class Classification:
    """Labelled texts; quality is accuracy, F1 or Matthews correlation."""

    name = "classification"
    in_one_run = True

    def __init__(
        self,
        *,
        texts: Sequence[str],
        labels: Sequence[int],
        tokenizer: Any,
        pairs: Sequence[str] | None = None,
        batch_size: int = 32,
        max_length: int | None = None,
        metric: str = "accuracy",
    ) -> None:
        """pairs: second texts, as in natural language inference. labels: class numbers from 0.
        metric: accuracy, f1 (of class 1, or the mean over more than two classes) or matthews.
        """
        self.metric = chosen_metric(metric, METRICS, self.name)
        self._texts = check_texts(texts)
        self._pairs = check_texts(pairs, "pairs") if pairs is not None else None
        self._labels = [int(label) for label in labels]
        for what, values in (("labels", self._labels), ("pairs", self._pairs)):
            if values is not None and len(values) != len(self._texts):
                raise UsageError(
                    f"There are {len(self._texts)} texts and {len(values)} {what}; one for each text is needed."
                )
        if min(self._labels) < 0:
            raise UsageError(f"Labels are class numbers from 0; got {min(self._labels)}.")
        self._tokenizer = tokenizer
        self._chunks = list(chunks(len(self._texts), batch_size))
        self._max_length = max_length
        self.fingerprint = fingerprint([self._texts, self._pairs, self._labels])

    def batches(self) -> Iterator[Batch]:
        for rows in self._chunks:
            texts = [self._texts[row] for row in rows]
            pairs = [self._pairs[row] for row in rows] if self._pairs is not None else None
            options = {"truncation": True, "max_length": self._max_length} if self._max_length else {}
            encoded = self._tokenizer(texts, pairs, padding=True, return_tensors="pt", **options)
            yield {**encoded, "labels": torch.tensor([self._labels[row] for row in rows])}

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        logits_BC = self._logits(model, batch)
        return nn.functional.cross_entropy(logits_BC.float(), batch["labels"].to(logits_BC.device), reduction="none")

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.nll(model, batch).mean()

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: right or not, and 1; or, where more than that matters, [B, classes * classes] of `confusion`."""
        logits_BC = self._logits(model, batch)
        answer_B, label_B = logits_BC.argmax(-1).cpu().numpy(), batch["labels"].numpy()
        if self.metric is not ACCURACY:
            return confusion(answer_B, label_B, logits_BC.shape[-1])
        return np.stack([answer_B == label_B, np.ones_like(label_B)], axis=1).astype(np.int64)

    def quality(self, model: nn.Module) -> Quality:
        return measured(self, model, Signature(data=self.fingerprint, arguments={"metric": self.metric.name}))

    def _logits(self, model: nn.Module, batch: Batch) -> Tensor:
        device = next(model.parameters()).device
        inputs = {name: value.to(device) for name, value in batch.items() if name != "labels"}
        logits_BC: Tensor = model(**inputs).logits
        if max(self._labels) >= logits_BC.shape[-1]:
            raise UsageError(
                f"The data has label {max(self._labels)}, the model knows classes 0 to {logits_BC.shape[-1] - 1}."
            )
        return logits_BC


TASK = Classification
