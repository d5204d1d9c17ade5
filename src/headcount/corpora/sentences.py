"""Sentences to analyse: with trees, with translations, or as plain text, from any supported source.

grammar[:LANGUAGE[:DOMAIN]]   the embedded corpus: trees and translations
bank.conllu                   a treebank: trees
folder, .tsv, .jsonl, hf:     parallel text: translations
folder of .txt by split       plain text, one sentence per line
any other file                plain text, one sentence per line
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headcount.corpora.conllu import read_conllu
from headcount.corpora.examples import example_hash, in_first_half
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.location import Location
from headcount.corpora.parallel import read_parallel
from headcount.corpora.parsing import parsed
from headcount.corpora.plain import SUFFIX as PLAIN
from headcount.corpora.plain import read_plain
from headcount.corpora.splits import files_in
from headcount.corpora.tables import SUFFIXES
from headcount.corpora.tree import Tree
from headcount.errors import CorpusError


@dataclass(frozen=True)
class Sentences(Sequence[Tree | str]):
    """Sentences (as trees if known), their translations if there are any, and the number skipped by reason."""

    items: Sequence[Tree | str]
    targets: Sequence[str] | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.items[index]

    def __iter__(self) -> Iterator[Tree | str]:
        return iter(self.items)

    @property
    def trees(self) -> int:
        return sum(isinstance(item, Tree) for item in self.items)

    @property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=20)
        for item in (*self.items, *(self.targets or ())):
            digest.update(repr(item).encode())
        return digest.hexdigest()

    def half(self, number: int) -> Sentences:
        """The first or second half of the sentences (1 or 2), divided by their hashes as `Source` divides examples."""
        targets: list[tuple[str, ...]] = [(target,) for target in self.targets] if self.targets else [()] * len(self)
        texts = [item.text if isinstance(item, Tree) else item for item in self.items]
        rows = [
            row
            for row, (text, target) in enumerate(zip(texts, targets, strict=True))
            if in_first_half(example_hash(text, *target)) == (number == 1)
        ]
        return replace(
            self,
            items=[self.items[row] for row in rows],
            targets=[self.targets[row] for row in rows] if self.targets else None,
        )


def read_sentences(
    data: str | Path,
    *,
    split: str | None = None,
    languages: Sequence[str] | None = None,
    parser: str | None = None,
    limit: int | None = None,
) -> Sentences:
    """Read sentences. Malformed trees are skipped and counted.

    split: split of the embedded corpus or of a folder or hub data set; test by default. A file is read as a whole.
    parser: parse texts without trees with `spacy` or `stanza`. A text may become several sentences; translations are
        dropped.
    """
    sentences = _read(str(data), split, languages, limit)
    if limit is not None:
        sentences = replace(
            sentences, items=sentences.items[:limit], targets=sentences.targets[:limit] if sentences.targets else None
        )
    if parser and not sentences.trees:
        trees = tuple(parsed([str(item) for item in sentences.items], parser))
        return Sentences(trees, None, sentences.skipped)
    return sentences


def _read(data: str, split: str | None, languages: Sequence[str] | None, limit: int | None) -> Sentences:
    location = Location.of(data)
    path = location.path
    if location.kind == "grammar":
        rows = Grammar.named(data).split(split or "test")
        return Sentences([row.tree for row in rows], [row.target for row in rows])
    if path.suffix == ".conllu":
        bank = read_conllu(path, on_error="skip")
        return Sentences(bank.trees, None, bank.skipped)
    if location.kind == "folder" and not languages:
        banks = files_in(path, (".conllu",))
        if banks:
            raise CorpusError(f"{path} is a folder of treebanks: give one of its files, such as {banks[0]}.")
        if has_plain_text(path):
            lines = read_plain(path, split=split or "test", limit=limit)
            return Sentences(lines, None, lines.skipped)
    if location.kind in ("folder", "hub") or path.suffix in SUFFIXES:
        pairs = read_parallel(data, languages=languages)
        rows = pairs[split] if limit is None else pairs[split].select(range(min(limit, len(pairs[split]))))
        skipped = sum(pairs.skipped.values(), Counter[str]())  # only the requested splits were read
        return Sentences(list(rows["source"]), list(rows["target"]), skipped)
    if location.kind == "missing":
        raise CorpusError(f"There is no {path}. Give grammar, a treebank (*.conllu), parallel text, or a text file.")
    lines = read_plain(path, limit=limit)
    return Sentences(lines, None, lines.skipped)


def has_plain_text(folder: Path) -> bool:
    """Whether the texts of a folder are .txt files alone."""
    training_files = [file for file in folder.glob("train.*") if file.suffix != PLAIN]
    return bool(files_in(folder, (PLAIN,))) and not training_files and not files_in(folder, SUFFIXES)
