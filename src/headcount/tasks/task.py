"""Task and Quality: the contract between data and everything that measures. Knows models only by calling them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UnknownName, UsageError
from headcount.metrics import LOSS, Metric
from headcount.record import Signature
from headcount.registry import Registry
from headcount.sites.running import evaluating

Batch = Mapping[str, Any]


@dataclass(frozen=True)
class Quality:
    """How good a model is at a task: one number, and what each example contributes to it."""

    name: str
    value: float
    statistics: np.ndarray  # [examples, columns]; paired tests compare these
    signature: Signature
    metric: Metric  # makes the value of the statistics, also of resampled ones

    @classmethod
    def of(cls, metric: Metric, statistics: np.ndarray, signature: Signature | None = None) -> Quality:
        return cls(metric.name, metric.of(statistics), statistics, signature or Signature(), metric)


class Task(Protocol):
    """What everything that measures a model asks of data."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Hash of the data."""

    def batches(self) -> Iterator[Batch]:
        """The data, batch by batch, in the same order every time."""

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B]: each example's negative log-likelihood, summed over its targets, without label smoothing."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """A scalar to train on."""

    def quality(self, model: nn.Module) -> Quality:
        """How good the model is on all of the data, dropout off."""


class Measured(Task, Protocol):
    """A task whose quality is measured batch by batch, in one run of the model each: what fast ablation asks for."""

    @property
    def metric(self) -> Metric:
        """What the columns of `measure` are summed up to."""

    @property
    def in_one_run(self) -> bool:
        """Whether the metric is measured by one run over each batch; not so where the model is to write."""

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, columns]: what each example of a batch contributes."""


class Drafting(Task, Protocol):
    """A task whose quality is of what a model writes: it can be asked to go on from what another model wrote."""

    @property
    def metric(self) -> Metric: ...

    def rows(self) -> Iterator[np.ndarray]:
        """Numbers of the examples in each batch."""

    def written(self, model: nn.Module) -> list[list[int]]:
        """The ids that the model writes for each example."""

    def drafted(self, model: nn.Module, rows: np.ndarray, drafts: Sequence[Sequence[int]]) -> Any:
        """Drafts of these examples, to be improved until they are what the model writes."""

    def drafts(self, model: nn.Module) -> bool:
        """Whether quality is of what the model writes, and drafts may be used."""

    def statistics(self, rows: np.ndarray, written: Sequence[Sequence[int]]) -> np.ndarray:
        """[rows, columns]: what these outputs contribute to the metric."""


@runtime_checkable
class Predicting(Task, Protocol):
    """A task that says which predictions a model makes on a batch: what relevance asks for."""

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B, T, C]: of every class or token, at every position; one position where there is one answer."""

    def predicted(self, batch: Batch) -> Tensor:
        """[B, T]: whether the model is asked for a prediction at a position of an example."""


@runtime_checkable
class Answering(Predicting, Protocol):
    """A task whose predictions depend on what was predicted before."""

    def answered(self, model: nn.Module) -> Predicting:
        """The same task, with what the model writes in place of the reference."""


class Trainable(Task, Protocol):
    """What the training loop asks of data besides."""

    @property
    def lengths(self) -> np.ndarray:
        """[N, 2]: what each example costs, in tokens of its two sides; the second may be 0."""

    def batch(self, rows: np.ndarray) -> Batch:
        """These examples side by side."""

    def targets(self, rows: np.ndarray) -> int:
        """Number of predictions that `loss_sum` sums over for these examples."""

    def loss_sum(self, model: nn.Module, batch: Batch) -> Tensor:
        """The loss to train on, summed over the predictions of a batch."""

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Cheap measures for watching training, `loss` among them; dropout off."""


class Teachable(Predicting, Trainable, Protocol):
    """A task to train on whose loss is one of logits, so that another model's may be asked for as well."""

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """`loss_sum` of logits [B, T, C] that a model gave for a batch."""


@dataclass(frozen=True)
class Given:
    """A task made of a user's own batches and loss: nothing is known of it but that."""

    given: Iterable[Batch]
    function: Callable[[nn.Module, Batch], Tensor]
    name: str = "given"

    @property
    def fingerprint(self) -> str:
        return fingerprint(batch for batch in self.given)

    def batches(self) -> Iterator[Batch]:
        return iter(self.given)

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        nll_B = self.function(model, batch)
        if nll_B.dim() != 1:
            raise UsageError(
                f"nll gives each example's loss, a tensor [batch]; got shape {list(nll_B.shape)}. A mean hides what "
                "each example needs: use reduction='none' and sum over targets."
            )
        return nll_B

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.nll(model, batch).mean()

    metric: ClassVar[Metric] = LOSS
    in_one_run: ClassVar[bool] = True

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        nll_B = self.nll(model, batch).double().cpu().numpy()
        return np.stack([nll_B, np.ones_like(nll_B)], axis=1)

    def quality(self, model: nn.Module) -> Quality:
        return measured(self, model, Signature(arguments={"metric": self.metric.name}))


def measured(task: Measured, model: nn.Module, signature: Signature) -> Quality:
    """The quality of a model on all batches of a task."""
    with evaluating(model):
        rows = [task.measure(model, batch) for batch in task.batches()]
    if not rows:
        raise UsageError("The task has no batches: there is nothing to measure on.")
    return Quality.of(task.metric, np.concatenate(rows), signature)


def chosen_metric(name: str, known: Mapping[str, Metric], task: str) -> Metric:
    if name not in known:
        raise UnknownName(f"metric of {task}", name, known)
    return known[name]


tasks: Registry[Callable[..., Task]] = Registry("task", "headcount.tasks", "TASK")


class _Tasks:
    """`hc.task("classification", texts=..., labels=..., tokenizer=...)`, or `hc.task.of(batches, nll=f)`."""

    def __call__(self, name: str, **data: Any) -> Task:
        return tasks[name](**data)

    def of(self, batches: Iterable[Batch], *, nll: Callable[[nn.Module, Batch], Tensor]) -> Task:
        """A task from batches (a list or a DataLoader) and a function of (model, batch) that gives losses [batch]."""
        if isinstance(batches, Iterator):
            raise UsageError("The batches are read more than once: give a list or a DataLoader, not an iterator.")
        return Given(batches, nll)


task = _Tasks()


def fingerprint(items: Iterable[Any]) -> str:
    """A hash of texts, labels or batches."""
    digest = hashlib.blake2b(digest_size=20)

    def add(item: Any) -> None:
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
        raise UsageError(f"{what} is a list of texts; got one text.")
    found = list(texts)
    if not found:
        raise UsageError(f"{what} is empty: there is nothing to measure on.")
    for place, text in enumerate(found):
        if not isinstance(text, str):
            raise UsageError(f"{what}[{place}] is {type(text).__name__}, expected text.")
    return found


def chunks(count: int, size: int) -> Iterator[range]:
    """The places 0 to count in runs of at most `size`."""
    if size < 1:
        raise UsageError(f"batch_size is at least 1; got {size}.")
    return (range(start, min(start + size, count)) for start in range(0, count, size))
