"""classification: predict a label for each text or pair of texts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import index

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.corpora.tables import SUFFIXES
from headcount.errors import UsageError
from headcount.hooks import config_of, configured_module
from headcount.metrics import ACCURACY, F1, MATTHEWS, class_counts
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch
from headcount.tasks.soundness import check_finite, check_logits
from headcount.tasks.task import USUAL, Reading, Task, check_texts
from headcount.tasks.text_task import TextTask
from headcount.tasks.texts import model_inputs

METRICS = {"accuracy": ACCURACY, "f1": F1, "matthews": MATTHEWS}
_FEWEST = 3  # texts of a class, on average, for the mean F1 of many classes
_OTHER_PROBLEMS = {
    "regression": "predicts numbers, not classes (problem_type is regression in its config)",
    "multi_label_classification": "gives each class a probability of its own (problem_type is "
    "multi_label_classification in its config)",
}


class Classification(TextTask):
    """Labelled texts; quality is accuracy, F1 or Matthews correlation."""

    name = "classification"
    predicts = trains = labelled = True
    measured_by = "classification: accuracy on the labelled texts; the gradient is of the loss"
    suffixes = SUFFIXES
    METRICS = METRICS

    def __init__(
        self,
        *,
        texts: Sequence[str],
        labels: Sequence[int],
        tokenizer: PreTrainedTokenizerBase,
        pairs: Sequence[str] | None = None,
        batch_size: int = 32,
        max_length: int | None = None,
        metric: str = "accuracy",
        smoothing: float = 0.0,
    ) -> None:
        """pairs: second texts, as in natural language inference. labels: class numbers from 0.
        metric: accuracy, f1 (of class 1, or the mean over more than two classes, those that occur) or matthews.
        smoothing: label smoothing, in `loss` only.
        """
        self.smoothing, self._labels = smoothing, _class_numbers(labels)
        pairs = None if pairs is None else check_texts(pairs, "pairs")
        super().__init__(
            texts, tokenizer, metric=metric, batch_size=batch_size, max_length=max_length, pairs=pairs,
            hashed=[pairs, self._labels, max_length],
        )  # fmt: skip
        if self.metric is not ACCURACY:  # unfinished work of earlier versions had other columns
            self.identity = {**self.identity, "statistics": "by class"}
        for what, values in (("labels", self._labels), ("pairs", pairs)):
            if values is not None and len(values) != len(self):
                raise UsageError(f"There are {len(self)} texts and {len(values)} {what}; give one per text.")
        if len(self) > 1 and len(set(self._labels)) == 1:
            warnings.warn(
                f"All {len(self)} texts have the label {self._labels[0]}, so accuracy, F1 and Matthews correlation are "
                "meaningless. If the data is sorted by label, shuffle it or raise the limit.",
                stacklevel=3,
            )
        self._warn_of_small_classes()

    def _warn_of_small_classes(self) -> None:
        """Warn of a mean F1 over classes of which most hardly occur: 77 classes with 100 texts miss it in 25%."""
        classes = len(set(self._labels))
        if self.metric is F1 and classes > 2 and len(self) < _FEWEST * classes:
            warnings.warn(
                f"{len(self)} texts have {classes} different labels: the mean F1 of classes with so few texts is too "
                "low by chance, and its interval may be too. Measure accuracy, or more texts.",
                stacklevel=4,
            )

    @classmethod
    def read(cls, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> Task:
        data = source.labelled(reading.classes)
        if reading.classes is None and not all(name.isdecimal() for name in data.classes):
            raise UsageError(
                f"{source.data} has the class names {', '.join(data.classes[:3])}{', ...' * (len(data.classes) > 3)}, "
                "but the model does not name its classes, so it is unknown which class is which. Give class numbers as "
                "labels, or the names by number as id2label in the model's config.json."
            )
        rows = source.rows(zip(*(texts for texts in (data.texts, data.pairs) if texts is not None), strict=True))
        return cls(
            texts=[data.texts[row] for row in rows], labels=[data.labels[row] for row in rows],
            pairs=None if data.pairs is None else [data.pairs[row] for row in rows], tokenizer=tokenizer,
            batch_size=reading.batch_size, max_length=reading.max_length, **reading.named_metric,
        )  # fmt: skip

    @classmethod
    def sentences(cls, source: Source) -> Sentences:
        data = source.labelled()
        return Sentences(data.texts, None, data.skipped)

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        return {**self._encode(rows), "labels": torch.tensor([self._labels[row] for row in rows])}

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        return len(rows)

    def check(self, model: nn.Module) -> None:
        _check_classifier(model, next(self.batches()))
        super().check(model)

    def separate(self, model: nn.Module) -> bool:
        """False also for a model that reads one text at a time."""
        return _finds_ends(configured_module(model))

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        logits_BC = self._logits(model, batch)
        return nn.functional.cross_entropy(logits_BC.float(), batch["labels"].to(logits_BC.device), reduction="none")

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Smoothed loss summed over texts."""
        logits_BC, labels_B = logits[:, 0].float(), batch["labels"].to(logits.device)
        return nn.functional.cross_entropy(logits_BC, labels_B, label_smoothing=self.smoothing, reduction="sum")

    @property
    def watched(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("accuracy", self.metric.name.lower())))

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Loss per text without smoothing, accuracy, and the task's metric if it is another one."""
        loss, right, counts = 0.0, 0, np.zeros((1, 1))
        with evaluating(model):
            for batch in self.batches():
                logits_BC, labels_B = self._logits(model, batch).cpu().float(), batch["labels"]
                loss += float(nn.functional.cross_entropy(logits_BC, labels_B, reduction="sum"))
                answers_B = logits_BC.argmax(-1)
                right += int((answers_B == labels_B).sum())
                if self.metric is not ACCURACY:
                    table = class_counts(answers_B.numpy(), labels_B.numpy(), logits_BC.shape[-1])
                    counts = counts + table.sum(0, keepdims=True)
        further = {} if self.metric is ACCURACY else {self.metric.name.lower(): self.metric.of(counts)}
        return {"loss": loss / len(self), "accuracy": right / len(self), **further}

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        return self._logits(model, batch)[:, None]

    def predicted(self, batch: Batch) -> Tensor:
        return torch.ones(len(batch["labels"]), 1, dtype=torch.bool)

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: 1 if right, and 1; for F1 and Matthews correlation, [B, 3 * classes] of `class_counts`."""
        logits_BC = self._logits(model, batch)
        answer_B, label_B = logits_BC.argmax(-1).cpu().numpy(), batch["labels"].numpy()
        if self.metric is not ACCURACY:
            return class_counts(answer_B, label_B, logits_BC.shape[-1])
        return np.stack([answer_B == label_B, np.ones_like(label_B)], axis=1).astype(np.int64)

    def _logits(self, model: nn.Module, batch: Batch) -> Tensor:
        _check_classifier(model, batch)
        inputs = model_inputs(model, batch, [name for name in batch if name != "labels"])
        logits_BC: Tensor = model(**inputs).logits
        check_logits(model, logits_BC, self.name, dimensions=2)
        check_finite(model, logits_BC, "scores of classes")
        if max(self._labels) >= logits_BC.shape[-1]:
            raise UsageError(
                f"The data has label {max(self._labels)}, the model knows classes 0 to {logits_BC.shape[-1] - 1}."
            )
        return logits_BC


def _check_classifier(model: nn.Module, batch: Batch) -> None:
    """Raise if the model does not choose one class per text, or cannot find the end of a text in a batch."""
    plain_model = configured_module(model)
    config = getattr(plain_model, "config", None)
    kind, number = getattr(config, "problem_type", None), getattr(config, "num_labels", None)
    if number == 1 or kind in _OTHER_PROBLEMS:
        what = _OTHER_PROBLEMS.get(kind or "", "gives one number for each text (num_labels is 1 in its config)")
        raise UsageError(
            f"{type(plain_model).__name__} {what}: accuracy and loss of a choice between classes say nothing of it. "
            "Use hc.task.of with its own loss."
        )
    if len(batch["labels"]) > 1 and not _finds_ends(plain_model):
        raise UsageError(
            f"{type(plain_model).__name__} reads its answer at the last token of a text, but its config has no "
            "pad_token_id to find it by in a batch. Set it in config.json, or use batch_size=1 (--batch-size 1)."
        )


def _finds_ends(model: nn.Module) -> bool:
    """Whether the model finds the last token of each text in a batch: decoders do by the padding id of the config."""
    padding = getattr(config_of(model), "pad_token_id", 0)
    unknown = padding is None or padding < 0  # some Llama models have -1 for none
    return not (unknown and isinstance(model, PreTrainedModel) and set(locate(model).kinds) == {"decoder"})


def _class_numbers(labels: Sequence[int]) -> list[int]:
    numbers = []
    for row, label in enumerate(labels):
        try:
            numbers.append(index(label))
        except TypeError as error:
            raise UsageError(
                f"labels[{row}] is {label!r:.40} ({type(label).__name__}); labels must be whole numbers, 0 or more."
            ) from error
    if min(numbers, default=0) < 0:
        raise UsageError(f"Labels must be class numbers, 0 or more; got {min(numbers)}.")
    return numbers


TASK = Classification
