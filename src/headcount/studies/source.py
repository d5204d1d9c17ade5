"""Where models and data come from, by name: what commands and whole studies are told. Heavy imports happen on use."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headcount.errors import UsageError

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

    def text_limit(self, model: str, task: str) -> int | None:
        """Tokens of a text that a model has positions for; None where any number will do."""
        from headcount.checkpoints.load import text_limit

        return text_limit(model, task=task, revision=self.revision, trust_remote_code=self.trust_remote_code)

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
    measured: str | None = None  # split to measure on; None: see `parts`
    half: int | None = None  # 1 or 2: of the texts by their hashes; None: all of them
    against: str | None = None  # the model whose embeddings others are compared with; the one that is measured if None

    def as_options(self) -> str:
        """The same task on the same data again on a command line, measured in the same way."""
        said = [f"--task {self.task}", self.text.as_options()]
        said += [f"--{name} {shlex.quote(column)}" for name, column in self.fields.items() if column]
        said += ["--lowercase"] if self.quality.get("lowercase") else []
        said += [f"--metric {self.quality['metric']}"] if "metric" in self.quality else []
        return " ".join(said)

    def both(self, model: str, how: Loading) -> tuple[Any, Any]:
        """The task to choose heads on, and the one to measure on."""
        chosen, measured = self.parts()
        return chosen.build(model, how), measured.build(model, how)

    def parts(self) -> tuple[TaskText, TaskText]:
        """What heads are chosen on, and what is measured on: other texts, unless the same split is named for both.

        Without a name it is `test`; where heads are chosen on that, or there is none, half of the texts is held out.
        """
        if self.measured:
            return self, self.elsewhere(None, self.measured)
        if "test" in self.splits() and self.split != "test":
            return self, self.elsewhere(None, "test")
        return self.halves(self)

    def halves(self, measured: TaskText) -> tuple[TaskText, TaskText]:
        """One half of the texts for each, where both would read the same ones; both as they are otherwise."""
        return (replace(self, half=1), replace(measured, half=2)) if self._overlaps(measured) else (self, measured)

    def splits(self) -> tuple[str, ...]:
        """The parts that the data have by name; none for a file."""
        from headcount.corpora.plain import SUFFIX
        from headcount.corpora.splits import read_hub, split_files
        from headcount.corpora.tables import SUFFIXES

        quiet()
        if self.task == "translation":
            return () if Path(self.text.data).is_file() else tuple(self.text.read().splits)
        if self.text.data.startswith("hf:"):
            return tuple(read_hub(self.text.data.removeprefix("hf:")))
        if not Path(self.text.data).is_dir():
            return ()
        suffixes = (SUFFIX,) if self.task in PLAIN else SUFFIXES
        return tuple(split_files(Path(self.text.data), suffixes))

    def elsewhere(self, data: str | None, split: str | None) -> TaskText:
        """The same task on other data."""
        place, name = data or self.text.data, split or self.split
        other = replace(self, text=replace(self.text, data=place), split=name, half=None)
        same = self.half is not None and self._overlaps(other)
        return replace(other, half=self.half) if same else other

    def _overlaps(self, other: TaskText) -> bool:
        """Whether both are read from one split, or from a file, which has none."""
        return self.text.data == other.text.data and (self.split == other.split or not self.splits())

    @property
    def part(self) -> str:
        """The part of the data that is read, for people."""
        name = Path(self.text.data).name if Path(self.text.data).is_file() else self.split
        return name if self.half is None else f"{'one' if self.half == 1 else 'the other'} half of {name}"

    def build(self, model: str, how: Loading, classes: tuple[str, ...] | None = None) -> Any:
        """The task, with the tokenizer of a model; classes: those of the model if not given.

        Texts are cut to max_length, and to what the model has positions for; the latter with a warning.
        """
        limit = how.text_limit(model, self.task)
        max_length = self.max_length if limit is None else min(limit, self.max_length)
        task = replace(self, max_length=max_length)._build(model, how, classes)
        task.split = self.part
        if max_length < self.max_length:
            warn_of_cuts(int((task.lengths.max(1) >= limit).sum()), limit)
        return task

    def _build(self, model: str, how: Loading, classes: tuple[str, ...] | None) -> Any:
        from headcount.corpora.plain import read_plain
        from headcount.tasks.task import task

        tokenizer = how.tokenizer(model)
        if self.task == "translation":
            pairs = self.text.read()[self.split]
            pairs = pairs.select(range(min(self.limit or len(pairs), len(pairs))))
            rows = pairs.select(self._rows(zip(pairs["source"], pairs["target"], strict=True)))
            texts = {"source": list(rows["source"]), "target": list(rows["target"])}
            return task("translation", **texts, tokenizer=tokenizer, max_length=self.max_length, **self.quality)
        quiet()
        common = {"tokenizer": tokenizer, "batch_size": self.batch_size, "max_length": self.max_length}
        common |= {"metric": self.quality["metric"]} if "metric" in self.quality else {}
        if self.task in PLAIN:
            plain = read_plain(self.text.data, split=self.split, text=self.fields["text"], limit=self.limit)
            plain = [plain[row] for row in self._rows(zip(plain, strict=True))]
            whole = {"model": how.load(self.against or model)} if self.task == "embedding" else {}
            return task(self.task, texts=plain, **whole, **common)
        found = self.labelled(classes or how.classes(model))
        rows = self._rows(zip(*(texts for texts in (found.texts, found.pairs) if texts is not None), strict=True))
        columns = {"texts": found.texts, "labels": found.labels, "pairs": found.pairs}
        chosen = {name: column and [column[row] for row in rows] for name, column in columns.items()}
        return task(self.task, **chosen, **common)

    def _rows(self, examples: Iterable[tuple[str, ...]]) -> list[int]:
        """Numbers of the examples that are in the half."""
        from headcount.tasks.overlap import example_hash, in_first_half

        wanted = (True, False) if self.half is None else (self.half == 1,)
        rows = [row for row, texts in enumerate(examples) if in_first_half(example_hash(*texts)) in wanted]
        if not rows:
            raise UsageError(
                f"{self.text.data} has too few texts to hold half of them out. Give more texts, or a part of the data "
                "to measure on: --measure-split, which may be the one heads are chosen on."
            )
        return rows

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


def warn_of_cuts(texts: int, limit: int | None) -> None:
    """Say how many texts are as long as the model can read, or were before they were cut."""
    if texts:
        reaching = "1 text reaches" if texts == 1 else f"{texts} texts reach"
        warnings.warn(
            f"{reaching} {limit} tokens, the most that the model can read; what is longer was cut off.", stacklevel=3
        )


def quiet() -> None:
    """Silence what transformers says on its way: the commands show what matters themselves."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
