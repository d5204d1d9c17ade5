"""classification: a label for each text, or for each pair of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.metrics import ACCURACY, F1, MATTHEWS, confusion
from headcount.record import Signature
from headcount.sites.running import evaluating
from headcount.tasks.batches import Batches
from headcount.tasks.task import Batch, Quality, check_texts, chosen_metric, chunks, fingerprint, measured
from headcount.tasks.texts import Texts, model_inputs

METRICS = {"accuracy": ACCURACY, "f1": F1, "matthews": MATTHEWS}


class Classification:
    """Labelled texts; quality is accuracy, F1 or Matthews correlation."""

    name = "classification"
    in_one_run = True
    split: str | None = None  # the part of the data that the texts are, for records

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
        smoothing: float = 0.0,
    ) -> None:
        """pairs: second texts, as in natural language inference. labels: class numbers from 0.
        metric: accuracy, f1 (of class 1, or the mean over more than two classes) or matthews.
        smoothing: of the labels, in `loss` only.
        """
        self.metric, self.smoothing = chosen_metric(metric, METRICS, self.name), smoothing
        found = check_texts(texts)
        second = check_texts(pairs, "pairs") if pairs is not None else None
        self._labels = _class_numbers(labels)
        for what, values in (("labels", self._labels), ("pairs", second)):
            if values is not None and len(values) != len(found):
                raise UsageError(f"There are {len(found)} texts and {len(values)} {what}; one for each text is needed.")
        self.tokenizer = tokenizer
        self._texts = Texts(found, tokenizer, second, max_length)
        self._chunks = list(chunks(len(found), batch_size))
        self.fingerprint = fingerprint([found, second, self._labels, max_length])
        self.identity = {"batch_size": batch_size, "max_length": max_length}

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def example_hashes(self) -> list[str]:
        """[N]: a hash of each example."""
        return self._texts.hashes

    @property
    def lengths(self) -> np.ndarray:
        """[N, 2]: tokens of each text, and 0."""
        return np.stack([self._texts.lengths, np.zeros(len(self), dtype=np.int64)], axis=1)

    def batches(self) -> Iterator[Batch]:
        return Batches(self.batch, self._chunks)

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        return {**self._texts.encode(rows), "labels": torch.tensor([self._labels[row] for row in rows])}

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        return len(rows)

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        logits_BC = self._logits(model, batch)
        return nn.functional.cross_entropy(logits_BC.float(), batch["labels"].to(logits_BC.device), reduction="none")

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.logits_loss(self.logits(model, batch), batch)

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Smoothed loss summed over texts."""
        logits_BC, labels_B = logits[:, 0].float(), batch["labels"].to(logits.device)
        return nn.functional.cross_entropy(logits_BC, labels_B, label_smoothing=self.smoothing, reduction="sum")

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.loss_sum(model, batch) / len(batch["labels"])

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Loss per text without smoothing, accuracy, and the task's metric where that is another one."""
        loss, tables = 0.0, []
        with evaluating(model):
            for batch in self.batches():
                logits_BC, labels_B = self._logits(model, batch).cpu().float(), batch["labels"]
                loss += float(nn.functional.cross_entropy(logits_BC, labels_B, reduction="sum"))
                answers_B = logits_BC.argmax(-1).numpy()
                tables.append(confusion(answers_B, labels_B.numpy(), logits_BC.shape[-1]).sum(0, keepdims=True))
        counts = np.concatenate(tables)
        classes = round(counts.shape[1] ** 0.5)
        right = float(counts.sum(0).reshape(classes, classes).trace())
        others = {} if self.metric is ACCURACY else {self.metric.name.lower(): self.metric.of(counts)}
        return {"loss": loss / len(self), "accuracy": right / len(self), **others}

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        return self._logits(model, batch)[:, None]

    def predicted(self, batch: Batch) -> Tensor:
        return torch.ones(len(batch["labels"]), 1, dtype=torch.bool)

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
        inputs = model_inputs(model, batch, [name for name in batch if name != "labels"])
        logits_BC: Tensor = model(**inputs).logits
        if max(self._labels) >= logits_BC.shape[-1]:
            raise UsageError(
                f"The data has label {max(self._labels)}, the model knows classes 0 to {logits_BC.shape[-1] - 1}."
            )
        return logits_BC


def _class_numbers(labels: Sequence[int]) -> list[int]:
    numbers = []
    for place, label in enumerate(labels):
        try:
            numbers.append(index(label))
        except TypeError as error:
            raise UsageError(
                f"labels[{place}] is {label!r:.40} ({type(label).__name__}); labels are class numbers: whole, from 0."
            ) from error
    if min(numbers, default=0) < 0:
        raise UsageError(f"Labels are class numbers from 0; got {min(numbers)}.")
    return numbers


TASK = Classification
