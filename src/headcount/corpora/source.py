"""Source: where data comes from, defined once for every command and study. Data is read lazily."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from headcount.corpora.examples import example_hash, in_first_half
from headcount.corpora.location import Kind, Location
from headcount.errors import UsageError, check_name

if TYPE_CHECKING:
    from headcount.corpora.labelled import Labelled
    from headcount.corpora.parallel import Parallel
    from headcount.corpora.plain import PlainTexts
    from headcount.corpora.sentences import Sentences

COLUMNS = ("source", "target", "text", "label", "pair")  # possible contents of a column
LONGEST = 250  # words of a sentence of parallel text


def default_split(data: str, split: str) -> str | None:
    """The split to read if none is named; None for a file, which is read as a whole."""
    return None if Location.of(data).kind == "file" else split


@dataclass(frozen=True)
class Source:
    """Where data comes from, and which part of it to use. Nothing is read before it is needed.

    Attributes:
        data: grammar[:LANGUAGE[:DOMAIN]], hf:NAME[:CONFIG], a folder or a file.
        split: Split to read, if the data has several.
        columns: Names of the columns: "source", "target", "text", "label" or "pair" -> name in the data.
        languages: Source and target language: the endings of files of parallel text.
        limit: Most examples to read.
        lowercase: Whether translations are compared without regard to case.
        longest: Longest sentence of parallel text in words. Longer pairs are skipped.
        half: 1 or 2 to use one half of the examples, divided by their hashes. None uses all.
    """

    data: str
    split: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    limit: int | None = None
    lowercase: bool = False
    longest: int = LONGEST
    half: int | None = None

    def __post_init__(self) -> None:
        for name in self.columns:
            check_name("column", name, COLUMNS)
        if ("source" in self.columns) != ("target" in self.columns):
            raise UsageError("Parallel text has two columns: give the names of source and target.")
        if self.limit is not None and not (isinstance(self.limit, Integral) and self.limit >= 1):
            raise UsageError(f"limit must be a whole number of examples, at least 1; got {self.limit!r}.")

    @property
    def kind(self) -> Kind:
        """Kind of data: the grammar, a hub data set, a folder or a file."""
        return Location.of(self.data).kind

    @property
    def label(self) -> str:
        """The data and its split, for records; a file has no split."""
        return self.data if self.split is None or self.kind == "file" else f"{self.data} {self.split}"

    def on(self, split: str | None) -> Source:
        """The same data with another split; unchanged if `split` is None."""
        return self if split is None else replace(self, split=split, half=None)

    @property
    def split_label(self) -> str:
        """Name of the split, or half of one, for messages."""
        location = Location.of(self.data)
        name = location.path.name if location.kind == "file" else self.split or self.data
        return name if self.half is None else f"{'one' if self.half == 1 else 'the other'} half of {name}"

    def split_names(self, suffixes: Sequence[str]) -> tuple[str, ...]:
        """Names of the splits of a hub data set, or of a folder with one file per split; none for a single file."""
        from headcount.corpora.splits import read_hub, split_files

        location = Location.of(self.data)
        if location.kind == "hub":
            return tuple(read_hub(location.hub_name))
        return tuple(split_files(location.path, suffixes)) if location.kind == "folder" else ()

    def parallel(self) -> Parallel:
        """All splits of parallel text."""
        from headcount.corpora.parallel import read_parallel

        columns = (self.columns["source"], self.columns["target"]) if "source" in self.columns else None
        return read_parallel(self.data, languages=self.languages or None, columns=columns, longest=self.longest)

    def pairs(self) -> Any:
        """Sentence pairs of the split: a data set with the columns `source` and `target`."""
        parallel = self.parallel()
        pairs = parallel[self.split]
        self._warn_of_skipped(sum(parallel.skipped.values(), Counter[str]()))
        return pairs.select(range(min(self.limit or len(pairs), len(pairs))))

    def labelled(self, classes: Sequence[str] | None = None) -> Labelled:
        """Labelled texts. `classes`: class names by number, if the model already has them."""
        from headcount.corpora.labelled import read_labelled

        columns = {name: self.columns.get(name) for name in ("text", "label", "pair")}
        data = read_labelled(self.data, split=self.split, classes=classes, limit=self.limit, **columns)
        self._warn_of_skipped(data.skipped)
        return data

    def plain(self) -> PlainTexts:
        """Texts without labels."""
        from headcount.corpora.plain import read_plain

        texts = read_plain(self.data, split=self.split, text=self.columns.get("text"), limit=self.limit)
        self._warn_of_skipped(texts.skipped)
        return texts

    def sentences(self, *, parser: str | None = None) -> Sentences:
        """Sentences, with trees and translations if the data has them."""
        from headcount.corpora.sentences import read_sentences

        return read_sentences(
            self.data, split=self.split, languages=self.languages or None, parser=parser, limit=self.limit
        )

    def _warn_of_skipped(self, skipped: Counter[str]) -> None:
        """Warn of skipped rows: the result does not report their number."""
        if skipped.total():
            reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
            warnings.warn(f"Rows of {self.data} were skipped: {reasons}.", stacklevel=4)

    def rows(self, examples: Iterable[tuple[str, ...]]) -> list[int]:
        """Indices of the examples in the chosen half; all indices if `half` is None."""
        if self.half is None:
            return [row for row, _ in enumerate(examples)]
        rows = [row for row, texts in enumerate(examples) if in_first_half(example_hash(*texts)) == (self.half == 1)]
        if not rows:
            raise UsageError(
                f"{self.data} has too few texts to split in two halves. Give more texts, or name the split to measure "
                "on with --measure-split; it may be the one heads are chosen on."
            )
        return rows

    def as_options(self) -> str:
        """Command-line options that name the same data, without split and limit."""
        words = ["--data", self.data]
        words += ["--languages", ",".join(self.languages)] if self.languages else []
        words += ["--columns", f"{self.columns['source']},{self.columns['target']}"] if "source" in self.columns else []
        spelling = {"text": "--text-column", "label": "--label", "pair": "--pair"}
        for name, option in spelling.items():
            words += [option, self.columns[name]] if name in self.columns else []
        words += ["--lowercase"] if self.lowercase else []
        return shlex.join(words)
