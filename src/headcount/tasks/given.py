"""A task made of a user's batches and loss, with checks that both can be measured with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.record import Signature
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch, Batches, by_example, fingerprint, has_rows, named_tensors, repeated, rows_of
from headcount.tasks.quality import Quality
from headcount.tasks.soundness import loss_tolerance
from headcount.tasks.task import Task, measured


class BatchTask(Task):
    """A task made of a user's batches and loss function."""

    name = "given"

    def __init__(self, batches: Iterable[Batch], nll: Callable[[nn.Module, Batch], Tensor]) -> None:
        self._batches, self._nll = batches, nll
        self._seen: list[str] = []  # hashes of the batches, as they were read first
        self._separate: bool | None = None  # None: not tried yet

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.batches())

    def batches(self) -> Iterator[Batch]:
        numbers = itertools.count()
        return Batches(lambda batch: self._repeated(next(numbers), batch), self._batches)

    def _repeated(self, number: int, batch: Batch) -> Batch:
        """The batch. Raises if it is not what it was before: examples are compared with themselves, masked and not."""
        content = fingerprint([named_tensors(batch)])
        if number == len(self._seen):
            self._seen.append(content)
        elif self._seen[number] != content:
            raise UsageError(
                f"Batch {number} is not the same each time the batches are read, so that examples would be compared "
                "with others. Set shuffle=False and use no random augmentation, or give list(loader); nll must not "
                "change its batch."
            )
        return batch

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        """[N]: the loss of each example, or fewer, such as one of each pair of rows."""
        nll_B = self._nll(model, batch)
        if nll_B.dim() != 1:
            raise UsageError(
                f"nll must return the loss of each example, a tensor [batch]; got shape {list(nll_B.shape)}. "
                "Use reduction='none' and sum over targets."
            )
        if has_rows(batch) and len(nll_B) > rows_of(batch):
            raise UsageError(
                f"nll must return at most one loss per example; got {len(nll_B)} losses of a batch of "
                f"{rows_of(batch)}. Sum the losses of the tokens of an example, or give each example a row."
            )
        return nll_B

    def losses(self, model: nn.Module, batch: Batch) -> int:
        """Only the loss function knows: it may give one for each pair of rows."""
        with evaluating(model):
            return len(self.nll(model, batch))

    def separate(self, model: nn.Module) -> bool:
        if self._separate is None:
            firsts: dict[tuple[str, ...], Batch] = {}  # which tensors have a row per example -> a batch
            for batch in self._batches:
                firsts.setdefault(tuple(by_example(batch)), batch)
            self._separate = all(self._same_twice(model, batch) for batch in firsts.values())
        return self._separate

    def _same_twice(self, model: nn.Module, batch: Batch) -> bool:
        """Whether losses are the same in a batch of the same examples twice."""
        try:
            with evaluating(model):
                once_B, twice_B = self.nll(model, batch), self.nll(model, repeated(batch, 2))
        except Exception:  # noqa: BLE001  (the loss may be for these batches only, and fail in any way on another)
            return False
        tolerance = loss_tolerance(model)
        return len(twice_B) == 2 * len(once_B) and torch.allclose(
            twice_B, once_B.repeat(2), rtol=tolerance, atol=tolerance
        )

    def quality(self, model: nn.Module) -> Quality:
        """The signature has no hash of the data: batches that are generated on the fly would be generated twice."""
        return measured(self, model, Signature(arguments={"metric": self.metric.name}))
