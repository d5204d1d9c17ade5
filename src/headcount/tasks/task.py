"""Task: the interface between data and everything that measures. Models are only called."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.errors import UsageError, check_list, check_name
from headcount.metrics import LOSS, Metric
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.registry import Registry
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch, fingerprint, rows_of
from headcount.tasks.quality import Evaluation, Quality
from headcount.tasks.soundness import check_losses


@dataclass(frozen=True)
class Reading:
    """How a task reads data: settings of a command besides the source. Each task uses those that apply to it."""

    batch_size: int = 16
    max_length: int | None = None  # tokens; longer texts are truncated
    metric: str | None = None  # the default of the task if None
    decoding: Mapping[str, Any] = field(default_factory=dict)  # of translations: beams, length_penalty, tokens
    classes: Sequence[str] | None = None  # class names by number, if the model has them
    reference: Callable[[], nn.Module] | None = None  # loads the whole model that embeddings are compared with

    @property
    def named_metric(self) -> dict[str, Any]:
        return {"metric": self.metric} if self.metric else {}


USUAL = Reading()
FIRST = 16  # examples whose tokens are hashed


class Task(ABC):
    """Data with a loss for each example and a metric: what every measurement of a model needs.

    A task must define its batches and the loss of each example. Everything else has a default: quality is the mean
    loss, and there is nothing about single examples, predictions or training.
    """

    name: str
    metric: Metric = LOSS  # function of the summed columns of `measure`
    split: str | None = None  # name of the split, for records
    tokenizer: Any = None
    smoothing: float = 0.0  # label smoothing in the training loss, for tasks that have it
    identity: Mapping[str, Any] = {}  # settings that decide the batches and the metric: pieces are numbered by batch
    stationary: bool = False  # whether all gradients are zero at the whole model
    predicts: bool = False  # whether `logits` and `predicted` are defined: relevance and distillation need them
    trains: bool = False  # whether a model can be trained on it
    writes: bool = False  # whether the model generates its output: commands that decode need it
    labelled: bool = False  # whether its data needs labels or targets
    measured_by: str = ""  # what importance is measured by, in words
    teacher: Callable[[Tensor, Tensor, Batch], Tensor] | None = None  # changes the training loss: `tasks.distilled`
    suffixes: ClassVar[tuple[str, ...]] = ()  # endings of the files in a folder of such data, one file per split

    # the data

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of the data."""

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """The data, batch by batch, in the same order every time."""

    def first_batch(self) -> Batch:
        """The first examples: the same whatever the size of batches is, if examples can be chosen."""
        if self.trains:
            return self.batch(range(min(FIRST, len(self.lengths))))
        return next(iter(self.batches()), {})

    @property
    def example_hashes(self) -> Sequence[str] | None:
        """[N]: a hash of each example; None if only batches are known."""
        return None

    @classmethod
    def read(cls, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> Task:
        """Create the task from a source of data."""
        raise UsageError(f"The task {cls.__name__} cannot be read from {source.data}: build it from texts.")

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        reading: Reading = USUAL,
        *,
        targets: Sequence[str] | None = None,
    ) -> Task:
        """Create the task from texts. targets: output for each text, if the model generates text."""
        raise UsageError(f"The task {cls.__name__} needs more than texts.")

    @classmethod
    def splits(cls, source: Source) -> tuple[str, ...]:
        """Names of the splits of the data; none for a file."""
        return source.split_names(cls.suffixes)

    @classmethod
    def sentences(cls, source: Source) -> Sentences:
        """The sentences of the data, to measure roles on."""
        return source.sentences()

    @classmethod
    def training_texts(cls, source: Source) -> Sequence[str] | None:
        """Training texts, if the data has them: token frequencies are counted in these."""
        return None

    # measuring

    def check(self, model: nn.Module) -> None:
        """Raise or warn if the output of the model on the first batch would give a wrong number.

        Also raise if there is nothing to predict: the loss would be 0 whatever the model does.
        """
        if self.trains:  # batches of other tasks may not consist of rows
            check_losses(model, next(iter(self.batches()), {}), self.nll)
        if self.predicts and not any(bool(self.predicted(batch).any()) for batch in self.batches()):
            raise UsageError(
                "There is nothing to predict: every text is empty, or has one token or special tokens only. Give "
                "longer texts."
            )

    @abstractmethod
    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B]: each example's negative log-likelihood, summed over its targets, without label smoothing."""

    def losses(self, model: nn.Module, batch: Batch) -> int:
        """Number of losses of a batch: one for each example."""
        return rows_of(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """A scalar to train on: per prediction, or per example if the task says nothing of predictions."""
        if not (self.predicts and self.trains):
            return self.nll(model, batch).mean()
        return self.loss_sum(model, batch) / self.predicted(batch).sum().clamp_min(1)

    @property
    def in_one_run(self) -> bool:
        """Whether one forward pass over each batch gives the metric; False if the model has to generate text."""
        return True

    def separate(self, model: nn.Module) -> bool:
        """Whether the loss of an example does not depend on the others in its batch, as contrastive losses do."""
        return True

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, columns]: the statistics of each example of a batch."""
        nll_B = self.nll(model, batch).double().cpu().numpy()
        return np.stack([nll_B, np.ones_like(nll_B)], axis=1)

    def quality(self, model: nn.Module) -> Quality:
        """Quality of the model on all of the data, with dropout off."""
        return measured(self, model, Signature(data=self.fingerprint, arguments={"metric": self.metric.name}))

    def evaluation(self, model: nn.Module, progress: Progress = silent) -> Evaluation:
        """The quality of a model, with everything else that is cheap to measure."""
        quality = self.quality(model)
        besides = {
            name: value for name, value in self.held_out(model).items() if not math.isclose(value, quality.value)
        }
        return Evaluation(quality, {quality.name: quality.value, **besides})

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Cheap measures during training, including `loss`, with dropout off; empty if the task has none."""
        return {}

    @property
    def watched(self) -> tuple[str, ...]:
        """Names of the measures of `held_out` besides `loss`."""
        return (self.metric.name.lower(),)

    # what a model predicts

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B, T, C]: logits of every class or token at every position; one position if there is one answer."""
        raise self._lacks("says nothing of what a model predicts")

    def predicted(self, batch: Batch) -> Tensor:
        """[B, T]: whether a prediction counts at this position of an example."""
        raise self._lacks("says nothing of what a model predicts")

    def answered(self, model: nn.Module) -> Task:
        """The same task with the output of the model instead of the reference, if the model generates text."""
        return self

    def drafts(self, model: nn.Module) -> bool:
        """Whether quality is of generated text and can be measured from drafts, as in `Translation`."""
        return False

    # training

    @property
    def lengths(self) -> np.ndarray:
        """[N, 2]: tokens of both sides of each example; the second may be 0."""
        raise self._lacks("cannot be trained on")

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """A batch of these examples."""
        raise self._lacks("cannot be trained on")

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        """Number of predictions that `loss_sum` sums over for these examples."""
        raise self._lacks("cannot be trained on")

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        """The loss to train on, summed over the predictions of a batch."""
        logits = self.logits(model, batch)
        loss = self.logits_loss(logits, batch)
        return loss if self.teacher is None else self.teacher(loss, logits, batch)

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """The loss of the answers, computed from the logits [B, T, C] of a batch, summed over predictions."""
        raise self._lacks("cannot be trained on")

    def _lacks(self, what: str) -> UsageError:
        return UsageError(f"The task {self.name!r} {what}.")


def measured(task: Task, model: nn.Module, signature: Signature) -> Quality:
    """The quality of a model on all batches of a task."""
    task.check(model)
    with evaluating(model):
        rows = [task.measure(model, batch) for batch in task.batches()]
    if not rows:
        raise UsageError("The task has no batches: there is nothing to measure on.")
    return Quality.of(task.metric, np.concatenate(rows), signature)


def chosen_metric(name: str, metrics: Mapping[str, Metric], task: str) -> Metric:
    check_name(f"metric of {task}", name, metrics)
    return metrics[name]


tasks: Registry[type[Task]] = Registry("task", "headcount.tasks", "TASK")


def token_hash(task: Task | None) -> str:
    """A hash of the first tokens of a task on texts: the hash of its data does not tell one tokenizer from another."""
    if task is None or task.tokenizer is None:
        return ""
    return fingerprint([task.first_batch()])


def check_texts(texts: Sequence[str], what: str = "texts") -> list[str]:
    """The texts as a list. Raises UsageError if there are none, or if one is not a string."""
    check_list(what, texts, "texts")
    checked = list(texts)
    if not checked:
        raise UsageError(f"{what} is empty: there is nothing to measure on.")
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise UsageError(f"{what}[{index}] is {type(text).__name__}, expected text.")
    return checked
