"""Measure the roles, importance and attention of every head of a model; the user need not provide data.

The text is the embedded English treebank, or the data of the user. The class of the model determines the task that
importance is measured with. Parts are saved and resumed as in `whole`; the part `setup` describes the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.checkpoints.loading import Loading
from headcount.corpora.frequencies import Frequencies, count_tokens, read_frequencies
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.location import Location
from headcount.corpora.sentences import Sentences
from headcount.corpora.tables import SUFFIXES
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.head_roles.measure import read_sentences
from headcount.progress import Progress, named, silent
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.results.explore import Setup
from headcount.statistics import ENOUGH_FOR_A_TAIL, examples_for
from headcount.studies.parts import PARTS, Part
from headcount.studies.parts_folder import run_parts
from headcount.studies.playing import first_of, texts_of
from headcount.studies.study_settings import StudySettings
from headcount.studies.subject import StudySubject
from headcount.studies.workload import LIMIT_OF_MODEL, Workload, warn_of_cuts
from headcount.tasks.task import Reading, Task, tasks

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED = "embedded English sentences"
SENTENCES = 300  # default number of sentences for roles
_GRAMMAR = Grammar(train=3000)  # the training sentences are used to count tokens
_COUNTED = 20_000  # maximum number of user sentences in which tokens are counted
_SCORED = 128  # maximum number of sentences for the gradient score
_LONGEST_TEXT = 64  # maximum number of tokens of a sentence whose attention is shown
_SHOWN = 4  # minimum number of sentences whose attention is shown
_MOST = 128  # maximum number of sentences for one-head-out
_WORK = 5e11  # heads x weights x sentences for one-head-out: a few minutes on two cores

NO_OBJECTIVE = "embedding"  # task if the class of the model implies none, or if its data are missing


@dataclass(frozen=True)
class ExploreSettings(StudySettings):
    """Settings that determine the results of `explore`.

    If the source has no data, the embedded sentences are used. Its limit is the number of sentences for roles.

    Attributes:
        frequencies: File with token frequencies. If empty, tokens are counted in the text.
        one_out: Number of sentences for one-head-out. If 0, it depends on the size of the model.
    """

    frequencies: str = ""
    one_out: int = 0

    @property
    def with_columns(self) -> bool:
        """Whether the data have columns, or source and target sides, that a task may need."""
        location = Location.of(self.source.data)
        grouped = location.kind in ("hub", "grammar", "folder") or location.path.suffix in SUFFIXES
        return bool(self.source.data) and grouped

    @property
    def sentences(self) -> int:
        return self.source.limit or SENTENCES


@dataclass(frozen=True)
class Explored(StudySubject):
    """A model to explore, with its text and tasks.

    Attributes:
        texts: Sentences whose attention is shown.
        settings: Settings that determine the results.
    """

    texts: tuple[str, ...] = ()
    settings: ExploreSettings

    @cached_property
    def objective(self) -> str:
        """Name of the task that importance is measured with."""
        name = self.loading.objective(self.settings.model).task or NO_OBJECTIVE
        return NO_OBJECTIVE if tasks[name].labelled and not self.settings.with_columns else name

    @property
    def kind(self) -> type[Task]:
        return tasks[self.objective]

    @cached_property
    def model(self) -> Any:
        task = None if self.objective == NO_OBJECTIVE else self.objective
        return self.loading.load(self.settings.model, task=task)

    @cached_property
    def text(self) -> Sentences:
        """Sentences to measure on: the data of the user, or the embedded sentences."""
        return first_of(self._every, self.settings.sentences)

    @cached_property
    def _every(self) -> Sentences:
        """All sentences, including those that are only used to count tokens."""
        settings = self.settings
        if not settings.source.data:
            return Sentences([row.tree for row in _GRAMMAR.split("dev")])
        work = self.work.with_limit(_COUNTED)
        if settings.with_columns and settings.source.kind != "grammar":
            return work.sentences()
        return work.source.sentences()

    @cached_property
    def sentences(self) -> Sentences:
        """Sentences for roles: the text and, if it has no trees, the embedded treebank."""
        items = [*self.text]
        if not self.text.trees:
            items += [row.tree for row in _GRAMMAR.split("dev")[: self.settings.sentences]]
        targets = [*self.targets, *self._written(items[len(self.text) :])] if self.kind.writes else None
        return replace(self.text, items=items, targets=targets)

    def text_hash(self, name: str) -> str | None:
        """As in a whole study; of the sentences without the translations that the model generates."""
        return self._every.fingerprint if name == "sentences" else super().text_hash(name)

    @cached_property
    def targets(self) -> Sequence[str]:
        """Translations of the text: from the data, or generated by the model."""
        return self._written(self.text) if self.text.targets is None else self.text.targets

    @cached_property
    def choosing(self) -> Any:
        """The task for the gradient score."""
        return self._task(min(_SCORED, self.settings.sentences), batch_size=self.settings.batch_size)

    @cached_property
    def measuring(self) -> Any:
        """The task for one-head-out, with fewer sentences."""
        count = self.settings.one_out or min(self.settings.sentences, affordable_sentences(self.model))
        batch_size = min(self.settings.batch_size, max(1, count // 4))  # four batches or more, to show progress
        return self._task(count, batch_size=batch_size)

    @cached_property
    def frequencies(self) -> Frequencies:
        settings = self.settings
        if settings.frequencies:
            return read_frequencies(settings.frequencies, self.tokenizer)
        if settings.source.data:
            texts: Sequence[str] = texts_of(self._every)
            return count_tokens(texts, self.tokenizer, source=f"{len(texts)} sentences of {settings.source.data}")
        texts = [row.tree.text for row in _GRAMMAR.split("train")]
        return count_tokens(texts, self.tokenizer, source=f"{len(texts)} other {EMBEDDED}")

    @cached_property
    def work(self) -> Workload:
        settings = self.settings
        return Workload(self.objective, settings.source, batch_size=settings.batch_size, max_length=self._longest)

    @cached_property
    def _longest(self) -> int:
        from headcount.sites.inputs import longest

        return longest(self.model, self.settings.max_length)

    def _task(self, count: int, *, batch_size: int) -> Any:
        if self.kind.labelled:
            work = replace(self.work.with_limit(count or None), batch_size=batch_size)
            return work.build(self.settings.model, self.loading)
        texts = texts_of(self.text)[: count or None]
        metric = None if self.kind.stationary else "loss"
        reading = Reading(batch_size, self._longest, metric, reference=lambda: self.model)
        targets = list(self.targets[: len(texts)]) if self.kind.writes else None
        task = self.kind.of_texts(texts, self.tokenizer, reading, targets=targets)
        by_setting = self._longest == self.settings.max_length
        reason = "the most that explore reads" if by_setting else LIMIT_OF_MODEL
        warn_of_cuts(int((task.lengths.max(1) >= self._longest).sum()), self._longest, reason)
        return task

    def _written(self, sentences: Sequence[Tree | str]) -> list[str]:
        """Return the greedy translations of sentences by the model."""
        from headcount.tasks.translation import Translation

        texts = texts_of(sentences)
        if not texts:
            return []
        work = Translation(source=texts, target=texts, tokenizer=self.tokenizer, max_length=self._longest)
        return work.translations(self.model, progress=named("writing targets", self.progress))


def affordable_sentences(model: PreTrainedModel) -> int:
    """Return the number of sentences for one-head-out that takes a few minutes; larger models get fewer.

    The largest get as many as a long tail of effects needs, whatever that takes.
    """
    from headcount.sites.locate import locate

    tables = 0 if model.get_output_embeddings() is not None else model.get_input_embeddings().weight.numel()
    weights = sum(parameter.numel() for parameter in model.parameters()) - tables
    heads = len(locate(model).heads)
    least = max(ENOUGH_FOR_A_TAIL, examples_for(max(1, heads)))
    return int(np.clip(_WORK / (max(1, heads) * max(1, weights)), least, _MOST))


def _setup(subject: Explored) -> Record[Setup]:
    """Describe for the report which data each part was measured on."""
    from headcount.sites.fingerprint import weight_hash

    settings, checkpoint = subject.settings, subject.loading.objective(subject.settings.model)
    data = settings.source.data
    source = f"texts of {data}" if data else EMBEDDED
    parts = Setup(
        architecture=checkpoint.architecture or type(subject.model).__name__,
        objective=subject.objective,
        measured_by=subject.kind.measured_by,
        because=_because(subject, checkpoint.task),
        looked_at=_looked_at(subject),
        gradient_on="" if subject.kind.stationary else f"{len(subject.choosing)} {source}",
        one_out_on=f"{len(subject.measuring)} {source}",
        counted_in=subject.frequencies.source,
    )
    arguments = {"data": data, "sentences": settings.sentences}
    return Record("explore", Signature(settings.model, weight_hash(subject.model), arguments=arguments), parts)


def _because(subject: Explored, task: str | None) -> str:
    """Explain the choice of the task, unless the class of the model implies it."""
    if task is not None and task != subject.objective:
        return "A classifier's own objective needs labelled texts: give them with --data."
    if task is None:
        return (
            "This checkpoint is a base model: without an output head it predicts nothing, so it has no loss. It has no "
            "gradient score either, because the gradient of the distance is zero at the full model."
        )
    if subject.kind.writes and subject.text.targets is None:
        return "No translations were given: the targets are the model's own greedy translations."
    return ""


def _looked_at(subject: Explored) -> str:
    """Name the sentences of roles, without those that are skipped."""
    text, sentences, data = subject.text, subject.sentences, subject.settings.source.data
    read = read_sentences(subject.model, sentences, subject.tokenizer, sentences.targets)
    of_text = sum(number < len(text) for number in read)
    if not data:
        return f"{of_text} {EMBEDDED} with gold trees"
    if subject.settings.source.columns.get("pair"):
        data += ", the first texts of pairs"
    skipped = f" ({len(text) - of_text} more were skipped)" if of_text < len(text) else ""
    if text.trees:
        return f"{of_text} sentences of {data} with their trees{skipped}"
    more = len(read) - of_text
    return f"{of_text} sentences of {data}{skipped}, and {more} {EMBEDDED} with gold trees for syntax"


def _roles(subject: Explored) -> Record:
    from headcount.studies.roles import look

    settings = subject.settings
    return look(
        subject.model, subject.sentences, subject.tokenizer, name=settings.model, data=settings.source.data or EMBEDDED,
        frequencies=subject.frequencies, progress=named("looking at roles", subject.progress),
    )  # fmt: skip


def _one_out(subject: Explored) -> Record:
    from headcount.checkpoints.chosen_on import read_chosen_on
    from headcount.studies.ablation import ablate

    model, name = subject.model, subject.settings.model
    return ablate(
        model, subject.measuring, name=name, chosen_on=read_chosen_on(name, subject.loading.revision), alone=False,
        alpha=0.05, progress=subject.progress,
    )  # fmt: skip


def _shown(subject: Explored) -> Record:
    """Record the attention on the sentences of the user, and on short sentences of the text if there are few."""
    from headcount.studies.examples import WEIGHTS, examples

    settings, sentences, texts = subject.settings, subject.sentences, subject.texts
    check_lengths(texts, subject.tokenizer)
    targets: list[str | None] = [None] * len(texts)
    targets += sentences.targets or [None] * len(sentences)
    longest = max([20, *(len(subject.tokenizer(text)["input_ids"]) for text in texts)])
    record = examples(
        subject.model, subject.tokenizer, [*texts, *sentences], targets=targets, count=max(_SHOWN, len(texts)),
        longest=longest, weights=10**9 if texts else WEIGHTS, name=settings.model,
        data=settings.source.data or EMBEDDED, progress=subject.progress,
    )  # fmt: skip
    signature = replace(record.signature, arguments={**record.signature.arguments, "texts": [*texts]})
    return replace(record, signature=signature)


def check_lengths(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise if a sentence is too short or too long for its attention to be shown."""
    for text in texts:
        tokens = len(tokenizer(text)["input_ids"])
        if not 2 <= tokens <= _LONGEST_TEXT:
            raise UsageError(
                f"The text {text[:60]!r} has {tokens} tokens; attention is shown on sentences of 2 to {_LONGEST_TEXT}."
            )


_MAKERS: Mapping[str, Callable[[Explored], Record] | Part] = {
    "setup": _setup,
    "roles": _roles,
    "gradient": PARTS["gradient"],
    "ablation": _one_out,
    "examples": _shown,
}


def explore(
    settings: ExploreSettings,
    out: Path,
    *,
    loading: Loading | None = None,
    texts: Sequence[str] = (),
    progress: Progress = silent,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Explore a model and save each part in a folder, from which the same call resumes.

    Args:
        settings: Settings that determine the results.
        out: Folder for the results.
        loading: Options for loading the model.
        texts: Additional sentences whose attention is shown. They may change when the folder is resumed.
        progress: Reports progress.
        refresh: Called after each part with the results so far.
    """
    subject = Explored(settings, loading or Loading(), out / "unfinished", progress, texts=tuple(texts))
    check_lengths(texts, subject.tokenizer)
    examples_file = out / "parts" / "examples.json"
    recorded_texts = Record.load(examples_file).signature.arguments.get("texts") if examples_file.is_file() else None
    outdated = ["examples"] if recorded_texts != list(texts) else []
    return run_parts("explore", subject, _MAKERS, out, outdated=outdated, refresh=refresh)  # type: ignore[arg-type]
