"""Parallel text: pairs of sentences by split, read from a folder, a file or the hub. Knows files, not tokenizers.

    folder           train.en train.de dev.en dev.de ...   one sentence per line
                     train.tsv dev.tsv ... or train.jsonl dev.jsonl ...
    file             pairs.tsv, pairs.jsonl                one split, named after the file
    hf:name[:config] a data set of the hub
    grammar[:language[:domain]]   the embedded corpus

Pairs are memory-mapped by `datasets`: a corpus may be larger than memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.corpora.grammar.corpus import SIZES, Grammar
from headcount.corpora.location import Location
from headcount.corpora.pairs import PairFiles, fault, pair_cells
from headcount.corpora.splits import Part, Splits, files_in, read_hub, split_name
from headcount.corpora.tables import SUFFIXES
from headcount.errors import CorpusError, check_name

if TYPE_CHECKING:
    from datasets import Dataset

Skipped = dict[str, Counter[str]]  # split -> reason -> pairs


@dataclass(frozen=True)
class Parallel:
    """Sentence pairs by split, each read on first use, and the number of skipped pairs by reason."""

    splits: Mapping[str, Dataset]  # columns `source` and `target`
    languages: tuple[str, str]
    skipped: Mapping[str, Counter[str]] = field(default_factory=dict)  # of the splits that were read

    def __getitem__(self, split: str | None) -> Dataset:
        """A split, or several joined by +: test+test2017. None: the only split, or test if there are several."""
        from datasets import concatenate_datasets

        if split is None:
            split = next(iter(self.splits)) if len(self.splits) == 1 else "test"
        names = [split_name(name.strip()) for name in split.split("+")]
        for name in names:
            check_name("split", name, self.splits)
        parts = [self.splits[name] for name in names]
        return parts[0] if len(parts) == 1 else concatenate_datasets(parts)


def read_parallel(
    data: str | Path,
    *,
    languages: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    longest: int = 250,
) -> Parallel:
    """Parallel text whose splits are read on first use.

    languages: source and target, the endings of the files in a folder; needed if it has more than two.
    columns: source and target columns of a table. By default the languages, or `source` and `target`.
    longest: pairs with more words on either side are skipped and counted, like empty ones.
    """
    if longest < 1:
        raise CorpusError(f"longest is a number of words, at least 1; got {longest}.")
    location = Location.of(data)
    if location.kind == "grammar":
        return _embedded(location.data)
    if location.kind == "hub":
        return _from_hub(location.hub_name, languages, columns, longest)
    path = location.path
    if location.kind == "missing":
        raise CorpusError(f"There is no {path}. Give a folder, a .tsv or .jsonl file, hf:<dataset> or grammar.")
    pair = _languages(path, languages)
    names = _two(columns, "columns") if columns else pair
    files = _table(path, names, longest) if path.is_file() else _folder(path, pair, names, longest)
    skipped: Skipped = {}
    parts = (Part(split, file.name, partial(_read, file, split_name(split), skipped)) for split, file in files)
    return Parallel(Splits(str(path), parts), pair, skipped)


def _read(files: PairFiles, split: str, skipped: Skipped) -> Dataset:
    pairs, skipped[split] = files.read()
    return pairs


def _embedded(name: str) -> Parallel:
    grammar = Grammar.named(name)
    parts = (Part(split, split, partial(_made, grammar, split)) for split in SIZES)
    return Parallel(Splits(name, parts), ("english", grammar.language))


def _made(grammar: Grammar, split: str) -> Dataset:
    from datasets import Dataset

    rows = grammar.split(split)
    return Dataset.from_dict({"source": [row.tree.text for row in rows], "target": [row.target for row in rows]})


def _languages(path: Path, languages: Sequence[str] | None) -> tuple[str, str]:
    if languages:
        return _two(languages, "languages")
    if path.is_file():
        return "source", "target"
    endings = sorted({file.suffix[1:] for file in path.glob("train.*") if file.suffix not in SUFFIXES})
    if len(endings) == 2:
        raise CorpusError(
            f"{path} has {endings[0]} and {endings[1]}: say which is the source, "
            f"languages=({endings[0]!r}, {endings[1]!r})."
        )
    if len(endings) == 1:
        raise CorpusError(
            f"{path} has train.{endings[0]} alone, but parallel text has two languages: train.en and train.de, or a "
            "table such as train.tsv."
        )
    if endings:
        raise CorpusError(
            f"{path} has the languages {', '.join(endings)}: say which two, source first, with languages=."
        )
    return "source", "target"


def _two(names: Sequence[str], what: str) -> tuple[str, str]:
    if isinstance(names, str) or len(names) != 2 or names[0] == names[1]:
        raise CorpusError(f"{what} must be two different names, source first; got {names!r}.")
    return names[0], names[1]


def _folder(
    path: Path, languages: tuple[str, str], columns: tuple[str, str], longest: int
) -> list[tuple[str, PairFiles]]:
    """(split, files) of all possible splits in a folder."""
    lines = [(file, file.with_suffix(f".{languages[1]}")) for file in files_in(path, [f".{languages[0]}"])]
    tables = [(file,) for file in files_in(path, SUFFIXES)]
    files: Iterable[tuple[Path, ...]] = (*lines, *tables)
    if not files:
        raise CorpusError(f"{path} has neither *.{languages[0]} nor *.tsv nor *.jsonl files.")
    return [(paths[0].stem, PairFiles(paths, columns, longest)) for paths in files]


def _table(path: Path, columns: tuple[str, str], longest: int) -> list[tuple[str, PairFiles]]:
    if path.suffix not in SUFFIXES:
        raise CorpusError(
            f"{path} is neither .tsv nor .jsonl. For one sentence per line, give a folder with one file per language."
        )
    return [(path.stem, PairFiles((path,), columns, longest))]


def _from_hub(name: str, languages: Sequence[str] | None, columns: Sequence[str] | None, longest: int) -> Parallel:
    pair = _two(languages, "languages") if languages else ("source", "target")
    names = _two(columns, "columns") if columns else pair
    stored, skipped = read_hub(name), dict[str, Counter[str]]()

    def read(split: str) -> Dataset:
        def cells(row: Mapping[str, object], number: int) -> dict[str, str]:
            source, target = pair_cells(row, names, f"{name}, split {split}, row {number}")
            return {"source": source, "target": target}

        rows = stored[split]
        pairs = rows.map(cells, with_indices=True).select_columns(["source", "target"])
        usable = pairs.filter(lambda row: not fault(row["source"], row["target"], longest))
        skipped[split] = Counter({"empty or too long": len(rows) - len(usable)})
        return usable

    return Parallel(Splits(name, (Part(split, split, partial(read, split)) for split in stored)), pair, skipped)
