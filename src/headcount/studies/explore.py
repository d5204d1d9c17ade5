"""Exploring a model: roles, importance and attention of every head, without any data of the user.

Text is the embedded English with its trees, or the user's. What importance is measured by follows from the model's
class. Parts are saved and resumed as in `whole`; the part `setup` says what was measured on what.
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
from headcount.progress import Progress, named, silent
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.results.explore import Setup
from headcount.studies.parts import PARTS, Part
from headcount.studies.parts_folder import run_parts
from headcount.studies.study_settings import StudySettings
from headcount.studies.subject import StudySubject
from headcount.studies.workload import Workload
from headcount.tasks.task import Reading, Task, tasks

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED = "embedded English sentences"
SENTENCES = 300  # for roles
_GRAMMAR = Grammar(train=3000)  # its training sentences are for counting tokens
_COUNTED = 20_000  # sentences of the user's text that tokens are counted in, at most
_SCORED = 128  # sentences of the gradient at most
_LONGEST_TEXT = 64  # tokens of a sentence whose attention is shown
_SHOWN = 4  # sentences whose attention is shown, where fewer are given
_LEAST, _MOST = 16, 128  # sentences of one-head-out
_WORK = 5e11  # heads x weights x sentences of one-head-out: a few minutes on two cores

NO_OBJECTIVE = "embedding"  # the task of a model whose class names none, or that lacks its data


@dataclass(frozen=True)
class ExploreSettings(StudySettings):
    """What decides the numbers; a source without data is the embedded sentences, its limit those for roles."""

    frequencies: str = ""  # file with frequencies of tokens; counted in the text if empty
    one_out: int = 0  # sentences of one-head-out; by the size of the model if 0

    @property
    def with_columns(self) -> bool:
        """Whether the data have columns, or sides, that a task may need."""
        location = Location.of(self.source.data)
        grouped = location.kind in ("hub", "grammar", "folder") or location.path.suffix in SUFFIXES
        return bool(self.source.data) and grouped

    @property
    def sentences(self) -> int:
        return self.source.limit or SENTENCES


@dataclass(frozen=True)
class Explored(StudySubject):
    """A model to explore, and the text that it is explored on."""

    texts: tuple[str, ...] = ()  # sentences whose attention is to be shown
    settings: ExploreSettings

    @cached_property
    def objective(self) -> str:
        """The task that importance is measured by."""
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
        """The sentences to measure on: the user's, or the embedded ones."""
        count, sentences = self.settings.sentences, self._every
        return replace(
            sentences, items=sentences[:count], targets=sentences.targets[:count] if sentences.targets else None
        )

    @cached_property
    def _every(self) -> Sentences:
        """Also those that tokens are only counted in."""
        settings = self.settings
        if not settings.source.data:
            return Sentences([row.tree for row in _GRAMMAR.split("dev")])
        work = self.work.with_limit(_COUNTED)
        if settings.with_columns and settings.source.kind != "grammar":
            return work.sentences()
        return work.source.sentences()

    @cached_property
    def sentences(self) -> Sentences:
        """Sentences to find roles on: the text, and the embedded treebank if the text has no trees."""
        items = [*self.text]
        if not self.text.trees:
            items += [row.tree for row in _GRAMMAR.split("dev")[: self.settings.sentences]]
        targets = [*self.targets, *self._written(items[len(self.text) :])] if self.kind.writes else None
        return replace(self.text, items=items, targets=targets)

    @cached_property
    def targets(self) -> Sequence[str]:
        """Translations of the text: the data's, or what the model writes."""
        return self._written(self.text) if self.text.targets is None else self.text.targets

    @cached_property
    def choosing(self) -> Any:
        """The task of the gradient."""
        return self._task(min(_SCORED, self.settings.sentences), batch_size=self.settings.batch_size)

    @cached_property
    def measuring(self) -> Any:
        """The task of one-head-out, on fewer sentences."""
        count = self.settings.one_out or affordable_sentences(self.model)
        batch_size = min(self.settings.batch_size, max(1, count // 4))  # four at least, so that progress is seen
        return self._task(count, batch_size=batch_size)

    @cached_property
    def frequencies(self) -> Frequencies:
        settings = self.settings
        if settings.frequencies:
            return read_frequencies(settings.frequencies, self.tokenizer)
        if settings.source.data:
            texts: Sequence[str] = _texts(self._every)
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
        texts = _texts(self.text)[: count or None]
        metric = None if self.kind.stationary else "loss"
        reading = Reading(batch_size, self._longest, metric, reference=lambda: self.model)
        targets = list(self.targets[: len(texts)]) if self.kind.writes else None
        return self.kind.of_texts(texts, self.tokenizer, reading, targets=targets)

    def _written(self, sentences: Sequence[Tree | str]) -> list[str]:
        """What the model writes for sentences, greedily."""
        from headcount.tasks.translation import Translation

        texts = _texts(sentences)
        if not texts:
            return []
        work = Translation(source=texts, target=texts, tokenizer=self.tokenizer, max_length=self._longest)
        return work.translations(self.model, progress=named("writing targets", self.progress))


def _texts(sentences: Sequence[Tree | str]) -> list[str]:
    return [item.text if isinstance(item, Tree) else item for item in sentences]


def affordable_sentences(model: PreTrainedModel) -> int:
    """Sentences of one-head-out that a few minutes allow: fewer for models with more heads and weights."""
    from headcount.sites.locate import locate

    tables = 0 if model.get_output_embeddings() is not None else model.get_input_embeddings().weight.numel()
    weights = sum(parameter.numel() for parameter in model.parameters()) - tables
    return int(np.clip(_WORK / (len(locate(model).heads) * max(1, weights)), _LEAST, _MOST))


def _setup(subject: Explored) -> Record[Setup]:
    """What is measured on what, in words for the page."""
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
    """Why importance is measured so, where the class of the model alone does not say it."""
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
    text, sentences, data = subject.text, subject.sentences, subject.settings.source.data
    if not data:
        return f"{len(sentences)} {EMBEDDED} with gold trees"
    if text.trees:
        return f"{len(text)} sentences of {data} with their trees"
    more = len(sentences) - len(text)
    return f"{len(text)} sentences of {data}, and {more} {EMBEDDED} with gold trees for syntax"


def _roles(subject: Explored) -> Record:
    from headcount.studies.roles import look

    settings = subject.settings
    return look(
        subject.model, subject.sentences, subject.tokenizer, name=settings.model, data=settings.source.data or EMBEDDED,
        frequencies=subject.frequencies, progress=named("looking at roles", subject.progress),
    )  # fmt: skip


def _one_out(subject: Explored) -> Record:
    from headcount.studies.ablation import ablate

    name, alpha = subject.settings.model, 0.05
    return ablate(subject.model, subject.measuring, name=name, alone=False, alpha=alpha, progress=subject.progress)


def _shown(subject: Explored) -> Record:
    """Attention on the sentences that were given, and on short ones of the text where these are few."""
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
    """Raise where a sentence is too short or too long to be drawn."""
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
    """Explore a model in a folder; refresh is called with what there is after each part.

    texts: sentences whose attention is shown, besides those of the text; other ones may be given on the same folder.
    """
    subject = Explored(settings, loading or Loading(), out / "unfinished", progress, texts=tuple(texts))
    check_lengths(texts, subject.tokenizer)
    examples_file = out / "parts" / "examples.json"
    if examples_file.is_file() and Record.load(examples_file).signature.arguments.get("texts") != list(texts):
        examples_file.unlink()
    return run_parts("explore", subject, _MAKERS, out, refresh=refresh)  # type: ignore[arg-type]
