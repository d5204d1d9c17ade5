"""Workload: which task a model does on which data, as commands and whole studies say it. Heavy imports happen on use.

Here alone is decided which texts heads are chosen on and which are measured: other ones, unless the user asks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headcount.checkpoints.loading import Loading, quiet
from headcount.corpora.source import Source
from headcount.tasks.harness import HARNESS, is_harness

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from headcount.corpora.sentences import Sentences
    from headcount.tasks.task import Task

MEASURED = "test"  # the split that is measured by default, where the data have it


@dataclass(frozen=True)
class Workload:
    """A task by name, the source of its data, and how they are read."""

    task: str
    source: Source
    measure_split: str | None = None  # see `parts`
    batch_size: int = 16
    max_length: int | None = 256  # tokens; None: as many as the model can read
    metric: str | None = None  # the task's usual one if not given
    decoding: dict[str, Any] = field(default_factory=dict)  # of translations: beams, length_penalty, tokens
    reference: str | None = None  # the model whose embeddings others are compared with; the one measured if None

    def as_options(self) -> str:
        """The same task on the same data again on a command line, measured in the same way."""
        words = " ".join(filter(None, (f"--task {self.task}", self.source.as_options() if self.source.data else "")))
        return f"{words} --metric {self.metric}" if self.metric else words

    # which texts

    def on(self, split: str | None = None, *, data: str | None = None) -> Workload:
        """The same task on another part of the data, or on other data.

        A half stays a half where both would read the same texts.
        """
        source = replace(self.source, data=data or self.source.data, split=split or self.source.split, half=None)
        other = replace(self, source=source)
        if self.source.half is not None and self._overlaps(other):
            return replace(other, source=replace(source, half=self.source.half))
        return other

    def with_limit(self, limit: int | None) -> Workload:
        """The same on at most this many texts; None: on all of them."""
        return replace(self, source=replace(self.source, limit=limit))

    def divide(self, *, choose: Workload | None = None) -> tuple[Workload, Workload]:
        """What heads are chosen on, and what is measured: other texts, unless the same split is named for both.

        Without a name it is `test`; where heads are chosen on that, or there is none, half of the texts is held out.
        choose: what heads are chosen on, where that is not this workload's own split: what is trained on, for example.
        """
        choose = choose or self
        if self.measure_split:
            return choose, self.on(self.measure_split)
        if MEASURED in self.splits():
            return choose.apart_from(self.on(MEASURED))
        return choose.apart_from(self)

    def apart_from(self, measured: Workload) -> tuple[Workload, Workload]:
        """This and what is measured: each one half of the texts where both would read the same ones."""
        if not self._overlaps(measured):
            return self, measured
        halves = (replace(self.source, half=1), replace(measured.source, half=2))
        return replace(self, source=halves[0]), replace(measured, source=halves[1])

    def splits(self) -> tuple[str, ...]:
        """The parts that the data have by name; none for a file."""
        quiet()
        return self.kind.splits(self.source)

    def _overlaps(self, other: Workload) -> bool:
        """Whether both are read from one split, or from a file, which has none."""
        if self.source.data != other.source.data:
            return False
        return self.source.split == other.source.split or not self.splits()

    # reading

    @property
    def kind(self) -> type[Task]:
        """The class of the task."""
        from headcount.tasks.task import tasks

        return tasks[HARNESS if self.by_harness else self.task]

    @property
    def by_harness(self) -> bool:
        """Whether the lm-evaluation-harness measures, with data of its own."""
        return is_harness(self.task)

    @property
    def loaded_for(self) -> str | None:
        """The task that a model is loaded for; None: what its checkpoint says."""
        return None if self.by_harness else self.task

    def both(self, model: str, loading: Loading) -> tuple[Task, Task]:
        """The task to choose heads on, and the one to measure on."""
        choose_on, measured = self.divide()
        return choose_on.build(model, loading), measured.build(model, loading)

    def build(self, model: str, loading: Loading, classes: tuple[str, ...] | None = None) -> Task:
        """The task, with the tokenizer of a model; classes: those of the model if not given.

        Texts are cut to max_length, and to what the model has positions for; the latter with a warning.
        """
        from headcount.tasks.task import Reading

        if self.by_harness:
            from headcount.tasks.lm_eval import LmEval

            reading = Reading(self.batch_size, None, self.metric)  # prompts are as long as the task makes them
            return LmEval.named(self.task, self.source, loading.tokenizer(model), reading)
        limit = loading.text_limit(model, self.task)
        bounds = [bound for bound in (limit, self.max_length) if bound is not None]
        max_length = min(bounds) if bounds else None
        reading = Reading(
            self.batch_size, max_length, self.metric, self.decoding, classes or loading.classes(model),
            lambda: loading.load(self.reference or model),
        )  # fmt: skip
        task = self.kind.read(self.source, loading.tokenizer(model), reading)
        task.split = self.source.split_label
        if limit is not None and max_length == limit and limit != self.max_length:
            warn_of_cuts(int((task.lengths.max(1) >= limit).sum()), limit)
        return task

    def sentences(self, trees: str | None = None) -> Sentences:
        """Sentences to look at: a treebank or other text, or what the task reads; trees where the data has some."""
        if trees:
            return replace(self.source, data=trees, columns={}).sentences()
        quiet()
        return self.kind.sentences(self.source)

    def frequencies(self, tokenizer: PreTrainedTokenizerBase, limit: int | None = None) -> Any:
        """Of tokens in what such models have learned from; None if the data do not have it."""
        from headcount.corpora.frequencies import count_tokens

        texts = self.kind.training_texts(self.source)
        return None if texts is None else count_tokens(texts[:limit], tokenizer, source=f"{self.source.data} train")


def warn_of_cuts(texts: int, limit: int | None) -> None:
    """Say how many texts are as long as the model can read, or were before they were cut."""
    if texts:
        reaching = "1 text reaches" if texts == 1 else f"{texts} texts reach"
        warnings.warn(
            f"{reaching} {limit} tokens, the most that the model can read; longer ones were truncated.", stacklevel=3
        )
