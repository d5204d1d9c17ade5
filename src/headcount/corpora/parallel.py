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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.corpora.grammar.corpus import SIZES, Grammar
from headcount.corpora.lines import read_lines
from headcount.corpora.splits import read_hub, split_name
from headcount.corpora.tables import SUFFIXES, read_rows
from headcount.errors import CorpusError, UnknownName

if TYPE_CHECKING:
    from datasets import Dataset

GRAMMAR = "grammar"
Pair = dict[str, str]  # {"source": ..., "target": ...}


@dataclass(frozen=True)
class Parallel:
    """Pairs of sentences by split, and how many were left out for which reason."""

    splits: Mapping[str, Dataset]  # columns `source` and `target`
    languages: tuple[str, str]
    skipped: Mapping[str, Counter[str]] = field(default_factory=dict)  # split -> reason -> pairs

    def __getitem__(self, split: str) -> Dataset:
        """A split, or several joined by +: test+test2017."""
        from datasets import concatenate_datasets

        names = [name.strip() for name in split.split("+")]
        for name in names:
            if name not in self.splits:
                raise UnknownName("split", name, self.splits)
        found = [self.splits[name] for name in names]
        return found[0] if len(found) == 1 else concatenate_datasets(found)


@dataclass(frozen=True)
class _Files:
    """Where one split is written down: two files of lines, or one table."""

    paths: tuple[Path, ...]
    columns: tuple[str, str]
    longest: int  # words

    def pairs(self) -> Iterator[tuple[str, str]]:
        if len(self.paths) == 2:
            return _aligned(*self.paths)
        return _rows(self.paths[0], self.columns)

    def fault(self, source: str, target: str) -> str:
        """Why a pair is left out; empty for a good one."""
        if not source.strip() or not target.strip():
            return "empty"
        return "too long" if max(len(source.split()), len(target.split())) > self.longest else ""

    def count(self) -> Counter[str]:
        """Read everything once: errors come before anything is written, and skips are counted. "" counts good pairs."""
        return Counter(self.fault(source, target) for source, target in self.pairs())

    def good(self) -> Iterator[Pair]:
        for source, target in self.pairs():
            if not self.fault(source, target):
                yield {"source": source.strip(), "target": target.strip()}


def read_parallel(
    place: str | Path,
    *,
    languages: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    longest: int = 250,
) -> Parallel:
    """Read parallel text.

    languages: source and target, the endings of the files in a folder; needed where a folder has more than two.
    columns: names of the source and target columns of a table; the languages, or `source` and `target`, if not given.
    longest: pairs with more words than this on either side are left out and counted, like empty ones.
    """
    if longest < 1:
        raise CorpusError(f"longest is a number of words, at least 1; got {longest}.")
    if str(place) == GRAMMAR or str(place).startswith(f"{GRAMMAR}:"):
        return _embedded(str(place))
    if str(place).startswith("hf:"):
        return _from_hub(str(place).removeprefix("hf:"), languages, columns, longest)
    path = Path(place)
    if not path.exists():
        raise CorpusError(f"There is no {path}. Give a folder, a .tsv or .jsonl file, hf:<dataset> or grammar.")
    pair = _languages(path, languages)
    names = _two(columns, "columns") if columns else pair
    files = _table(path, names, longest) if path.is_file() else _folder(path, pair, names, longest)
    splits, skipped = {}, {}
    for split, where in files.items():
        counts = where.count()
        if not counts.pop("", 0):
            raise CorpusError(
                f"{where.paths[0]} has no usable pair of sentences; left out: {dict(counts) or 'nothing'}."
            )
        splits[split], skipped[split] = _mapped(where), counts
    return Parallel(splits, pair, skipped)


class _Embedded(Mapping[str, "Dataset"]):
    """The splits of the embedded corpus, each made when it is asked for: the training data takes seconds."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._made: dict[str, Dataset] = {}

    def __getitem__(self, split: str) -> Dataset:
        from datasets import Dataset

        if split not in self._made:
            rows = self._grammar.split(split)
            texts = {"source": [row.tree.text for row in rows], "target": [row.target for row in rows]}
            self._made[split] = Dataset.from_dict(texts)
        return self._made[split]

    def __iter__(self) -> Iterator[str]:
        return iter(SIZES)

    def __len__(self) -> int:
        return len(SIZES)

    def __contains__(self, split: object) -> bool:
        return split in SIZES


def _embedded(name: str) -> Parallel:
    chosen = Grammar.named(name)
    return Parallel(_Embedded(chosen), ("english", chosen.language))


def _languages(path: Path, languages: Sequence[str] | None) -> tuple[str, str]:
    if languages:
        return _two(languages, "languages")
    if path.is_file():
        return "source", "target"
    found = sorted({file.suffix[1:] for file in path.glob("train.*") if file.suffix not in SUFFIXES})
    if len(found) == 2:
        raise CorpusError(
            f"{path} has {found[0]} and {found[1]}: say which is the source, languages=({found[0]!r}, {found[1]!r})."
        )
    if found:
        raise CorpusError(f"{path} has the languages {', '.join(found)}: say which two, source first, with languages=.")
    return "source", "target"


def _two(names: Sequence[str], what: str) -> tuple[str, str]:
    if isinstance(names, str) or len(names) != 2 or names[0] == names[1]:
        raise CorpusError(f"{what} are two different names, source first; got {names!r}.")
    return names[0], names[1]


def _folder(path: Path, languages: tuple[str, str], columns: tuple[str, str], longest: int) -> dict[str, _Files]:
    files = {}
    for source in sorted(path.glob(f"*.{languages[0]}")):
        target = source.with_suffix(f".{languages[1]}")
        if not target.is_file():
            raise CorpusError(f"{source} has no counterpart {target}: every split needs a file in both languages.")
        files[split_name(source.stem)] = _Files((source, target), columns, longest)
    for suffix in SUFFIXES:
        for table in sorted(path.glob(f"*{suffix}")):
            files.setdefault(split_name(table.stem), _Files((table,), columns, longest))
    if not files:
        raise CorpusError(f"{path} has neither *.{languages[0]} nor *.tsv nor *.jsonl files.")
    return files


def _table(path: Path, columns: tuple[str, str], longest: int) -> dict[str, _Files]:
    if path.suffix not in SUFFIXES:
        raise CorpusError(
            f"{path} is neither .tsv nor .jsonl; one sentence per line needs a folder with a file per language."
        )
    return {split_name(path.stem): _Files((path,), columns, longest)}


def _aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    left, right = read_lines(source), read_lines(target)
    for number in range(1, 2**62):
        one, other = next(left, None), next(right, None)
        if one is None and other is None:
            return
        if one is None or other is None:
            ended, rest = (source, right) if one is None else (target, left)
            total = number + sum(1 for _ in rest)
            raise CorpusError(
                f"{ended} ends after {number - 1} lines, its counterpart has {total}: lines must be aligned."
            )
        yield one, other


def _rows(path: Path, columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    header = next(read_lines(path), "").split("\t") if path.suffix == ".tsv" else []
    bare = len(header) == 2 and not set(columns) <= set(header)  # no header: two columns, source first
    for where, row in read_rows(path, header=columns if bare else None):
        yield _cells(row, columns, where) if row else ("", "")


def _cells(row: Any, columns: tuple[str, str], where: str) -> tuple[str, str]:
    """The pair in a row, also where it stands under `translation`, as on the hub."""
    if isinstance(row, Mapping) and isinstance(row.get("translation"), Mapping):
        row = row["translation"]
    if not isinstance(row, Mapping) or not all(isinstance(row.get(name), str) for name in columns):
        keys = sorted(row) if isinstance(row, Mapping) else type(row).__name__
        raise CorpusError(
            f"{where} has no text under {columns[0]!r} and {columns[1]!r} but {keys}; name them with columns=."
        )
    return row[columns[0]], row[columns[1]]


def _mapped(files: _Files) -> Dataset:
    """The good pairs as a memory-mapped data set, made anew when a file changes."""
    from datasets import Dataset

    # As text: a list would be taken for shards, and each of them read.
    stamp = ",".join(f"{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files.paths)
    made: Dataset = Dataset.from_generator(_generate, gen_kwargs={"files": files, "stamp": stamp})
    return made


def _generate(files: _Files, stamp: str) -> Iterator[Pair]:  # noqa: ARG001
    """`stamp` only tells the cache of `datasets` whether the files are still the same."""
    yield from files.good()


def _from_hub(name: str, languages: Sequence[str] | None, columns: Sequence[str] | None, longest: int) -> Parallel:
    pair = _two(languages, "languages") if languages else ("source", "target")
    names = _two(columns, "columns") if columns else pair
    rules, splits, skipped = _Files((), names, longest), {}, {}
    for split, rows in read_hub(name).items():
        where = f"{name}, split {split}"
        mapped = rows.map(
            lambda row, where=where: dict(zip(("source", "target"), _cells(row, names, where), strict=True))
        )
        kept = mapped.select_columns(["source", "target"]).filter(
            lambda row: not rules.fault(row["source"], row["target"])
        )
        splits[split] = kept
        skipped[split] = Counter({"empty or too long": len(rows) - len(kept)})
    return Parallel(splits, pair, skipped)
