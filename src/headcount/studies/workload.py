"""Workload: a task on data, as given to commands and whole studies. Heavy imports happen on use.

Decides which texts heads are chosen on and which are measured: different ones, unless the user asks otherwise.
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

LIMIT_OF_MODEL = "the most that the model can read"
MEASURED = "test"  # the split measured by default, if the data has it
HALF = "half"  # as the split to measure on: half of the texts of the other split


@dataclass(frozen=True)
class Workload:
    """A task by name, the source of its data, and how to read it."""

    task: str
    source: Source
    measure_split: str | None = None  # see `divide`
    batch_size: int = 16
    max_length: int | None = 256  # tokens; None: the limit of the model
    metric: str | None = None  # the default of the task if None
    decoding: dict[str, Any] = field(default_factory=dict)  # of translations: beams, length_penalty, tokens
    reference: str | None = None  # reference model of embeddings; the measured one if None

    def as_options(self) -> str:
        """Command-line options for the same task, data and metric."""
        words = " ".join(filter(None, (f"--task {self.task}", self.source.as_options() if self.source.data else "")))
        return f"{words} --metric {self.metric}" if self.metric else words

    # which texts

    def on(self, split: str | None = None, *, data: str | None = None) -> Workload:
        """The same task on another split, or on other data.

        A file has no other splits. A half stays a half if both would read the same texts.
        """
        source = replace(self.source, data=data or self.source.data, half=None)
        if source.kind != "file":
            source = replace(source, split=split or source.split)
        elif data:
            source = replace(source, split=None)
        other = replace(self, source=source)
        if self.source.half is not None and self._overlaps(other):
            return replace(other, source=replace(source, half=self.source.half))
        return other

    def with_limit(self, limit: int | None) -> Workload:
        """The same with at most this many texts; None: all."""
        return replace(self, source=replace(self.source, limit=limit))

    def divide(self, *, choose: Workload | None = None) -> tuple[Workload, Workload]:
        """Workloads to choose heads on and to measure on: different texts, unless the same split is named for both.

        The default split is `test`; if heads are chosen on it, or there is none, half of the texts is held out.
        choose: workload to choose heads on, if it is not this one, such as the training data.
        """
        choose = choose or self
        if self.measure_split == HALF:
            return choose.apart_from(replace(self, source=replace(self.source, half=2)))
        if self.measure_split:
            return choose, self.on(self.measure_split)
        if MEASURED in self.splits():
            return choose.apart_from(self.on(MEASURED))
        return choose.apart_from(self)

    def apart_from(self, measured: Workload) -> tuple[Workload, Workload]:
        """This workload and the measured one; each gets half of the texts if both would read the same texts."""
        if not self._overlaps(measured):
            return self, measured
        halves = (replace(self.source, half=1), replace(measured.source, half=2))
        return replace(self, source=halves[0]), replace(measured, source=halves[1])

    def splits(self) -> tuple[str, ...]:
        """Names of the splits of the data; none for a file."""
        quiet()
        return self.kind.splits(self.source)

    def _overlaps(self, other: Workload) -> bool:
        """Whether both read the same split, or the same file, which has no splits."""
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
        """Whether the lm-evaluation-harness measures, on its own data."""
        return is_harness(self.task)

    @property
    def loaded_for(self) -> str | None:
        """The task that a model is loaded for; None: that of its checkpoint."""
        return None if self.by_harness else self.task

    def both(self, model: str, loading: Loading) -> tuple[Task, Task]:
        """The task to choose heads on, and the one to measure on."""
        choose_on, measured = self.divide()
        return choose_on.build(model, loading), measured.build(model, loading)

    def build(self, model: str, loading: Loading, classes: tuple[str, ...] | None = None) -> Task:
        """Create the task with the tokenizer of a model. classes: by default those of the model.

        Texts are truncated to max_length and to the limit of the model, with a warning.
        """
        from headcount.tasks.task import Reading

        if self.by_harness:
            from headcount.tasks.lm_eval import LmEval

            reading = Reading(self.batch_size, None, self.metric)  # prompts are not truncated
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
        if max_length is not None:
            reason = LIMIT_OF_MODEL if max_length == limit else "the value of --max-length"
            warn_of_cuts(int((task.lengths.max(1) >= max_length).sum()), max_length, reason)
        return task

    def sentences(self, trees: str | None = None) -> Sentences:
        """Sentences to measure roles on: a treebank or other text, or the texts of the task, with trees if known."""
        if trees:
            return replace(self.source, data=trees, columns={}).sentences()
        quiet()
        return self.kind.sentences(self.source)

    def frequencies(self, tokenizer: PreTrainedTokenizerBase, limit: int | None = None) -> Any:
        """Token frequencies in the training data; None if the data has none."""
        from headcount.corpora.frequencies import count_tokens

        texts = self.kind.training_texts(self.source)
        return None if texts is None else count_tokens(texts[:limit], tokenizer, source=f"{self.source.data} train")


def warn_of_cuts(texts: int, limit: int | None, reason: str = LIMIT_OF_MODEL) -> None:
    """Warn of the number of texts that were truncated to a limit. reason: what the limit is."""
    if texts:
        reaching = "1 text reaches" if texts == 1 else f"{texts} texts reach"
        warnings.warn(f"{reaching} {limit} tokens, {reason}; longer ones were truncated.", stacklevel=3)
