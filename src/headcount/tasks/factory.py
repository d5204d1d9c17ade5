"""`hc.task`: creates tasks by name, from a user's batches, or from a source of data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.source import Source
from headcount.errors import UsageError
from headcount.tasks.given import BatchTask
from headcount.tasks.harness import HARNESS, is_harness, task_names
from headcount.tasks.task import USUAL, Reading, Task, tasks


class _Tasks:
    """The type of `hc.task`, which creates tasks."""

    def __call__(self, name: str, **data: Any) -> Task:
        """Create a task by name: "classification", "embedding", "language-modelling", "masked-language-modelling",
        "translation", or "lm-eval:TASK[,TASK]" for tasks of the lm-evaluation-harness. The data is given by keyword.
        """
        if is_harness(name):
            return tasks[HARNESS](**{"names": task_names(name), **data})
        return tasks[name](**data)

    def of(self, batches: Iterable[Any], *, nll: Callable[[nn.Module, Any], Tensor]) -> Task:
        """Create a task from batches.

        Args:
            batches: List or DataLoader of batches, read several times in the same order: no shuffling. A batch is a
                mapping, list or tuple of tensors.
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
