"""A task made of a user's batches and loss, with checks that both can be measured with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.hooks import Hooks
from headcount.record import Signature
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.batch import (
    Batch,
    Batches,
    by_example,
    fingerprint,
    has_content,
    has_rows,
    holds_arrays,
    most_rows,
    repeated,
    rows_of,
)
from headcount.tasks.quality import Quality
from headcount.tasks.soundness import loss_tolerance
from headcount.tasks.task import Task, measured

_EVEN, _ODD = slice(0, None, 2), slice(1, None, 2)


class BatchTask(Task):
    """A task made of a user's batches and loss function.

    A batch is a mapping. Parts of a list or tuple, as of a TensorDataset, are named by their number; `nll` gets them as
    they were.
    """

    name = "given"

    def __init__(self, batches: Iterable[Any], nll: Callable[[nn.Module, Any], Tensor]) -> None:
        self._batches, self._nll = batches, nll
        self._restore: Callable[[Mapping[str, Any]], Any] = lambda batch: batch  # from named parts to what was given
        self._seen: list[str] = []  # hashes of the batches, as they were read first
        self._separate: bool | None = None  # None: not tried yet

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.batches())

    def batches(self) -> Iterator[Batch]:
        numbers = itertools.count()
        return Batches(lambda batch: self._repeated(next(numbers), batch), self._batches)

    def _repeated(self, number: int, parts: Any) -> Batch:
        """The batch. Raises if it is not what it was before: examples are compared with themselves, masked and not."""
        batch, self._restore = _named_parts(parts)
        content = fingerprint([{str(name): value for name, value in batch.items() if _compared(value)}])
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
        nll_B = self._nll(model, self._restore(batch) if isinstance(batch, Mapping) else batch)
        if nll_B.dim() != 1:
            raise UsageError(
                f"nll must return the loss of each example, a tensor [batch]; got shape {list(nll_B.shape)}. "
                "Use reduction='none' and sum over targets."
            )
        if has_rows(batch) and len(nll_B) > most_rows(batch):
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
            largest: dict[tuple[str, ...], Batch] = {}  # which tensors have a row per example -> a batch
            for batch in self.batches():
                names = tuple(by_example(batch))
                largest[names] = max(largest.get(names, batch), batch, key=rows_of)
            self._separate = all(self._same_beside_others(model, batch) for batch in largest.values())
        return self._separate

    def _same_beside_others(self, model: nn.Module, batch: Batch) -> bool:
        """Whether losses are the same in a batch of the same examples twice, where heads are silent in every other one.

        If they were silent nowhere, a mean over the batch would be the same too.
        """
        tolerance = loss_tolerance(model)
        try:
            with evaluating(model):
                once_B = self.nll(model, batch)
                expected_B = once_B.repeat(2)
                for silent, heard in ((_EVEN, _ODD), (_ODD, _EVEN)):
                    with _silenced(model, silent, of=len(expected_B)):
                        twice_B = self.nll(model, repeated(batch, 2))
                    if len(twice_B) != len(expected_B) or not torch.allclose(
                        twice_B[heard], expected_B[heard], rtol=tolerance, atol=tolerance
                    ):
                        return False
        except Exception:  # noqa: BLE001  (the loss may be for these batches only, and fail in any way on another)
            return False
        return True

    def quality(self, model: nn.Module) -> Quality:
        """The signature has no hash of the data: batches that are generated on the fly would be generated twice."""
        return measured(self, model, Signature(arguments={"metric": self.metric.name}))


@contextmanager
def _silenced(model: nn.Module, silent: slice, *, of: int) -> Iterator[None]:
    """Zero outputs of all heads inside the block, in the rows of some losses.

    of: number of losses. Each comes from as many rows of the model.
    """

    def silence(context: Tensor) -> Tensor:
        scale_B = torch.ones(of, dtype=context.dtype, device=context.device)
        scale_B[silent] = 0.0
        scale_R = scale_B[torch.arange(len(context), device=context.device) * of // len(context)]
        return context * scale_R.view(-1, *(1,) * (context.dim() - 1))

    with Hooks(model) as hooks:
        for site in locate(model):
            if site.num_heads:
                hooks.change_input(site.entry, silence)
        yield


def _compared(value: object) -> bool:
    """Whether a part of a batch is compared with what it was. An object may be made anew each time."""
    return has_content(value) or holds_arrays(value)


def _named_parts(parts: Any) -> tuple[Batch, Callable[[Batch], Any]]:
    """A batch by name, and the function that makes what was given of it again."""
    if isinstance(parts, Mapping):
        return parts, lambda batch: batch
    if not isinstance(parts, list | tuple):
        return {"0": parts}, lambda batch: batch["0"]
    build = getattr(type(parts), "_make", type(parts))  # of a named tuple
    return {str(number): part for number, part in enumerate(parts)}, lambda batch: build(batch.values())
