"""Task and Quality: the contract between data and everything that measures. Knows models only by calling them."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.errors import UnknownName, UsageError
from headcount.metrics import LOSS, Metric
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.registry import Registry
from headcount.sites.running import evaluating
from headcount.tasks.harness import HARNESS, is_harness, task_names
from headcount.tasks.soundness import check_losses

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Batch = Mapping[str, Any]


@dataclass(frozen=True)
class Quality:
    """Quality of a model at a task: the value of a metric, and the statistics of each example behind it.

    Attributes:
        name: Name of the metric.
        value: Value of the metric over all examples.
        statistics: Array [examples, columns] with what each example contributes. Paired tests compare these.
        signature: Data and arguments that the value was measured with.
        metric: Function from summed statistics to the value; also applied to resampled examples.
    """

    name: str
    value: float
    statistics: np.ndarray
    signature: Signature
    metric: Metric

    @classmethod
    def of(cls, metric: Metric, statistics: np.ndarray, signature: Signature | None = None) -> Quality:
        """The quality that follows from the statistics of all examples."""
        return cls(metric.name, metric.of(statistics), statistics, signature or Signature(), metric)


@dataclass(frozen=True)
class Evaluation:
    """All that is measured of a model at once."""

    quality: Quality
    measures: Mapping[str, float]  # by name, the quality first
    columns: tuple[str, ...] = ()  # of the statistics; none where they have no names
    settings: Mapping[str, str] = field(default_factory=dict)  # of the metrics, as other tools write them
    translations: tuple[str, ...] | None = None  # one per example


@dataclass(frozen=True)
class Reading:
    """How a task reads data: what a command may say besides the source. Each task takes what it has a use for."""

    batch_size: int = 16
    max_length: int | None = None  # tokens; longer texts are cut
    metric: str | None = None  # the task's usual one if not given
    decoding: Mapping[str, Any] = field(default_factory=dict)  # of translations: beams, length_penalty, tokens
    classes: Sequence[str] | None = None  # what class numbers stand for, where a model knows already
    reference: Callable[[], nn.Module] | None = None  # loads the whole model that embeddings are compared with

    @property
    def named_metric(self) -> dict[str, Any]:
        return {"metric": self.metric} if self.metric else {}


USUAL = Reading()


class Task(ABC):
    """What everything that measures a model asks of data.

    A task must say what its batches are and what each example loses. All else has a default that is true of any task:
    quality is the mean loss; nothing is known of single examples, predictions or training.
    """

    name: str
    metric: Metric = LOSS  # what the columns of `measure` are summed up to
    split: str | None = None  # the part of the data that the examples are, for records
    tokenizer: Any = None
    smoothing: float = 0.0  # of the labels, in the loss to train on, for tasks that have a use for it
    identity: Mapping[str, Any] = {}  # how the data are cut into batches and measured: pieces are numbered by batch
    stationary: bool = False  # whether all gradients are zero at the whole model
    predicts: bool = False  # whether `logits` and `predicted` say what a model predicts: relevance and teachers ask
    trains: bool = False  # whether a model can be trained on it
    writes: bool = False  # whether the model writes its answers: commands that decode ask
    labelled: bool = False  # whether its data must say what is right: texts alone are not enough
    measured_by: str = ""  # what importance is measured by, for people
    suffixes: ClassVar[tuple[str, ...]] = ()  # of the files that a folder of such data has, one for each split

    # the data

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of the data."""

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """The data, batch by batch, in the same order every time."""

    @property
    def example_hashes(self) -> Sequence[str] | None:
        """[N]: a hash of each example; None where only batches are known."""
        return None

    @classmethod
    def read(cls, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> Task:
        """The task on data by name."""
        del tokenizer, reading
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
        """The task on texts at hand; targets: what is to be written for each, where the model writes."""
        del texts, tokenizer, reading, targets
        raise UsageError(f"The task {cls.__name__} needs more than texts.")

    @classmethod
    def splits(cls, source: Source) -> tuple[str, ...]:
        """The parts that the data have by name; none for a file."""
        return source.split_names(cls.suffixes)

    @classmethod
    def sentences(cls, source: Source) -> Sentences:
        """The sentences of the data, to look at heads on."""
        return source.sentences()

    @classmethod
    def training_texts(cls, source: Source) -> Sequence[str] | None:
        """Texts that models of this task have learned from, where the data have them: tokens are counted in these."""
        del source
        return None

    # measuring

    def check(self, model: nn.Module) -> None:
        """Raise, or warn, where what the model gives on the first batch would end in a wrong number."""
        if self.trains:  # of others only batches are known, which may not be made of rows
            check_losses(model, next(iter(self.batches()), {}), self.nll)

    @abstractmethod
    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B]: each example's negative log-likelihood, summed over its targets, without label smoothing."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """A scalar to train on."""
        return self.nll(model, batch).mean()

    @property
    def in_one_run(self) -> bool:
        """Whether the metric is measured by one run over each batch; not so where the model is to write."""
        return True

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, columns]: what each example of a batch contributes to the metric."""
        nll_B = self.nll(model, batch).double().cpu().numpy()
        return np.stack([nll_B, np.ones_like(nll_B)], axis=1)

    def quality(self, model: nn.Module) -> Quality:
        """How good the model is on all of the data, dropout off."""
        return measured(self, model, Signature(data=self.fingerprint, arguments={"metric": self.metric.name}))

    def evaluation(self, model: nn.Module, progress: Progress = silent) -> Evaluation:
        """The quality of a model, with everything else that is cheap to measure."""
        del progress
        quality = self.quality(model)
        besides = {
            name: value for name, value in self.held_out(model).items() if not math.isclose(value, quality.value)
        }
        return Evaluation(quality, {quality.name: quality.value, **besides})

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Cheap measures for watching training, `loss` among them; dropout off. None where the task has none."""
        del model
        return {}

    # what a model predicts

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B, T, C]: of every class or token, at every position; one position where there is one answer."""
        raise self._lacks("says nothing of what a model predicts")

    def predicted(self, batch: Batch) -> Tensor:
        """[B, T]: whether the model is asked for a prediction at a position of an example."""
        raise self._lacks("says nothing of what a model predicts")

    def answered(self, model: nn.Module) -> Task:
        """The same task, with what the model writes in place of the reference, where it writes."""
        del model
        return self

    def drafts(self, model: nn.Module) -> bool:
        """Whether quality is of what the model writes, and may be measured from drafts, as in `Translation`."""
        del model
        return False

    # training

    @property
    def lengths(self) -> np.ndarray:
        """[N, 2]: what each example costs, in tokens of its two sides; the second may be 0."""
        raise self._lacks("cannot be trained on")

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """These examples side by side."""
        raise self._lacks("cannot be trained on")

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        """Number of predictions that `loss_sum` sums over for these examples."""
        raise self._lacks("cannot be trained on")

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        """The loss to train on, summed over the predictions of a batch."""
        return self.logits_loss(self.logits(model, batch), batch)

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """`loss_sum` of logits [B, T, C] that a model gave for a batch."""
        raise self._lacks("cannot be trained on")

    def _lacks(self, what: str) -> UsageError:
        return UsageError(f"The task {self.name!r} {what}.")


class BatchTask(Task):
    """A task made of a user's own batches and loss: nothing is known of it but that."""

    name = "given"

    def __init__(self, batches: Iterable[Batch], nll: Callable[[nn.Module, Batch], Tensor]) -> None:
        self._batches, self._nll = batches, nll

    @property
    def fingerprint(self) -> str:
        return fingerprint(batch for batch in self._batches)

    def batches(self) -> Iterator[Batch]:
        return iter(self._batches)

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        nll_B = self._nll(model, batch)
        if nll_B.dim() != 1:
            raise UsageError(
                f"nll must return the loss of each example, a tensor [batch]; got shape {list(nll_B.shape)}. "
                "Use reduction='none' and sum over targets."
            )
        return nll_B

    def quality(self, model: nn.Module) -> Quality:
        """Without the hash of the data: batches that are made on the way would be made twice."""
        return measured(self, model, Signature(arguments={"metric": self.metric.name}))


def measured(task: Task, model: nn.Module, signature: Signature) -> Quality:
    """The quality of a model on all batches of a task."""
    task.check(model)
    with evaluating(model):
        rows = [task.measure(model, batch) for batch in task.batches()]
    if not rows:
        raise UsageError("The task has no batches: there is nothing to measure on.")
    return Quality.of(task.metric, np.concatenate(rows), signature)


def chosen_metric(name: str, metrics: Mapping[str, Metric], task: str) -> Metric:
    if name not in metrics:
        raise UnknownName(f"metric of {task}", name, metrics)
    return metrics[name]


tasks: Registry[type[Task]] = Registry("task", "headcount.tasks", "TASK")


class _Tasks:
    """The type of `hc.task`, which creates tasks."""

    def __call__(self, name: str, **data: Any) -> Task:
        """Create a task by name: "classification", "embedding", "language-modelling", "masked-language-modelling",
        "translation", or "lm-eval:TASK[,TASK]" for tasks of the lm-evaluation-harness. The data is given by keyword.
        """
        if is_harness(name):
            return tasks[HARNESS](**{"names": task_names(name), **data})
        return tasks[name](**data)

    def of(self, batches: Iterable[Batch], *, nll: Callable[[nn.Module, Batch], Tensor]) -> Task:
        """Create a task from batches.

        Args:
            batches: List or DataLoader of batches, read several times.
            nll: Function of (model, batch) that returns the loss of each example, a tensor [batch].
        """
        if isinstance(batches, Iterator):
            raise UsageError("Batches are read several times: give a list or a DataLoader, not an iterator.")
        return BatchTask(batches, nll)

    def read(self, name: str, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> Task:
        """Create a task from a `Source`: `hc.task.read("classification", hc.Source("folder/", split="dev"),
        tokenizer)`.
        """
        return tasks[name].read(source, tokenizer, reading)


task = _Tasks()
"""Create a task: data, the loss of each example, and the metric of quality.

- `hc.task("classification", texts=..., labels=..., tokenizer=...)` takes the data by keyword. The other names are
  "embedding", "language-modelling", "masked-language-modelling", "translation", and "lm-eval:TASK[,TASK]" for tasks of
  the lm-evaluation-harness.
- `hc.task.of(batches, nll=function)` takes a list or DataLoader of batches, and a function of (model, batch) that
  returns the loss of each example, a tensor [batch].
- `hc.task.read("classification", hc.Source("folder/", split="dev"), tokenizer)` reads a file, folder or hub data set.
"""


def fingerprint(items: Iterable[object]) -> str:
    """A hash of texts, labels or batches."""
    digest = hashlib.blake2b(digest_size=20)

    def add(item: object) -> None:
        if isinstance(item, Tensor):
            digest.update(str(tuple(item.shape)).encode())
            digest.update(item.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        elif isinstance(item, Mapping):
            for key in sorted(item):
                digest.update(f"{key}=".encode())
                add(item[key])
        else:
            digest.update(f"{item!r};".encode())

    for item in items:
        add(item)
    return digest.hexdigest()


def check_texts(texts: Sequence[str], what: str = "texts") -> list[str]:
    """The texts as a list; none at all, or something that is no text, is an error."""
    if isinstance(texts, str):
        raise UsageError(f"{what} must be a list of texts; got a single text.")
    checked = list(texts)
    if not checked:
        raise UsageError(f"{what} is empty: there is nothing to measure on.")
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise UsageError(f"{what}[{index}] is {type(text).__name__}, expected text.")
    return checked


def chunks(count: int, size: int) -> Iterator[range]:
    """The places 0 to count in runs of at most `size`."""
    if size < 1:
        raise UsageError(f"batch_size must be at least 1; got {size}.")
    return (range(start, min(start + size, count)) for start in range(0, count, size))
