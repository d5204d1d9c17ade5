"""Where models and data come from, by name: what commands and whole studies are told. Heavy imports happen on use."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any

PLAIN = ("language-modelling", "masked-language-modelling", "embedding")  # tasks on plain text


@dataclass(frozen=True)
class Loading:
    """How MODEL is loaded."""

    dtype: str | None
    revision: str | None
    trust_remote_code: bool
    device: str | None = None  # such as cuda or mps; the CPU if not given

    def load(self, model: str, *, task: str | None = None, **options: Any) -> Any:
        from headcount.checkpoints.load import load

        quiet()
        if self.revision:
            options["revision"] = self.revision
        live = load(model, task=task, dtype=self.dtype, trust_remote_code=self.trust_remote_code, **options)
        return live if self.device is None else _moved(live, self.device)

    def tokenizer(self, model: str) -> Any:
        from headcount.checkpoints.companions import load_tokenizer

        quiet()
        return load_tokenizer(model, revision=self.revision, trust_remote_code=self.trust_remote_code)

    def classes(self, model: str) -> tuple[str, ...] | None:
        """What the classes of a model are called; None where they have no names of their own."""
        from headcount.checkpoints.companions import class_names

        return class_names(model, revision=self.revision, trust_remote_code=self.trust_remote_code)

    def objective(self, model: str) -> Any:
        """What the class of a model says of its task."""
        from headcount.checkpoints.objective import objective

        quiet()
        return objective(model, revision=self.revision, trust_remote_code=self.trust_remote_code)


def _moved(model: Any, device: str) -> Any:
    from headcount.errors import UsageError

    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:  # torch has many words for a device that is not there
        reason = str(error).splitlines()[0]
        raise UsageError(f"The model cannot be moved to the device {device!r}: {reason}") from error


@dataclass(frozen=True)
class ParallelText:
    """Where parallel text comes from."""

    data: str
    languages: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    longest: int

    def read(self) -> Any:
        from headcount.corpora.parallel import read_parallel

        quiet()
        return read_parallel(self.data, languages=self.languages, columns=self.columns, longest=self.longest)

    def as_options(self) -> str:
        """The same again on a command line."""
        said = ["--data", self.data]
        said += ["--languages", ",".join(self.languages)] if self.languages else []
        said += ["--columns", ",".join(self.columns)] if self.columns else []
        return shlex.join(said)


@dataclass(frozen=True)
class TaskText:
    """Which task a model does on which data."""

    task: str
    text: ParallelText
    split: str
    limit: int | None
    batch_size: int
    max_length: int
    fields: dict[str, str | None]  # columns of labelled text
    quality: dict[str, Any]  # how quality is measured
    measured: str | None = None  # split to measure on, where it is not the one heads are chosen on
    against: str | None = None  # the model whose embeddings others are compared with; the one that is measured if None

    def as_options(self) -> str:
        """The same task on the same data again on a command line, measured in the same way."""
        said = [f"--task {self.task}", self.text.as_options()]
        said += [f"--{name} {shlex.quote(column)}" for name, column in self.fields.items() if column]
        said += ["--lowercase"] if self.quality.get("lowercase") else []
        said += [f"--metric {self.quality['metric']}"] if "metric" in self.quality else []
        return " ".join(said)

    def both(self, model: str, how: Loading) -> tuple[Any, Any]:
        """The task to choose heads on, and the one to measure on; None where that is the same."""
        task = self.build(model, how)
        return task, self.elsewhere(None, self.measured).build(model, how) if self.measured else None

    def elsewhere(self, data: str | None, split: str | None) -> TaskText:
        """The same task on other data."""
        return replace(self, text=replace(self.text, data=data or self.text.data), split=split or self.split)

    def build(self, model: str, how: Loading, classes: tuple[str, ...] | None = None) -> Any:
        """The task, with the tokenizer of a model; classes: those of the model if not given."""
        from headcount.corpora.plain import read_plain
        from headcount.tasks.task import task

        tokenizer = how.tokenizer(model)
        if self.task == "translation":
            pairs = self.text.read()[self.split]
            rows = pairs.select(range(min(self.limit or len(pairs), len(pairs))))
            texts = {"source": list(rows["source"]), "target": list(rows["target"])}
            return task("translation", **texts, tokenizer=tokenizer, max_length=self.max_length, **self.quality)
        quiet()
        common = {"tokenizer": tokenizer, "batch_size": self.batch_size, "max_length": self.max_length}
        common |= {"metric": self.quality["metric"]} if "metric" in self.quality else {}
        if self.task in PLAIN:
            plain = read_plain(self.text.data, split=self.split, text=self.fields["text"], limit=self.limit)
            whole = {"model": how.load(self.against or model)} if self.task == "embedding" else {}
            return task(self.task, texts=plain, **whole, **common)
        found = self.labelled(classes or how.classes(model))
        return task(self.task, texts=found.texts, labels=found.labels, pairs=found.pairs, **common)

    def sentences(self, trees: str | None = None) -> Any:
        """Sentences to look at: a treebank or other text, or what the task reads; trees where the data has some."""
        from headcount.corpora.plain import read_plain
        from headcount.corpora.sentences import Sentences, read_sentences

        if trees or (self.task == "translation" and not self.text.columns):
            place, languages = trees or self.text.data, self.text.languages
            return read_sentences(place, split=self.split, languages=languages, limit=self.limit)
        if self.task == "translation":
            pairs = self.text.read()[self.split]
            rows = pairs.select(range(min(self.limit or len(pairs), len(pairs))))
            return Sentences(list(rows["source"]), list(rows["target"]))
        if self.task in PLAIN:
            return Sentences(read_plain(self.text.data, split=self.split, text=self.fields["text"], limit=self.limit))
        return Sentences(self.labelled().texts)

    def labelled(self, classes: tuple[str, ...] | None = None) -> Any:
        """Labelled text; classes: what the class numbers stand for, where a model knows already."""
        from headcount.corpora.labelled import read_labelled

        quiet()
        return read_labelled(self.text.data, split=self.split, classes=classes, limit=self.limit, **self.fields)


def quiet() -> None:
    """Silence what transformers says on its way: the commands show what matters themselves."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
