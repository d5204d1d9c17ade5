"""Splits: the splits of a data set, as files of a folder or on the hub, each read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from headcount.errors import CorpusError, UnknownName

_SYNONYMS = {"valid": "dev", "val": "dev", "validation": "dev"}
Content = TypeVar("Content")


def split_name(name: str) -> str:
    """The standard name of a split: validation is dev."""
    return _SYNONYMS.get(name, name)


@dataclass(frozen=True)
class Part(Generic[Content]):
    """A split of a data set as it is stored."""

    split: str
    name: str  # of the file, or of the split on the hub
    read: Callable[[], Content]


class Splits(Mapping[str, Content]):
    """The splits of a data set. Each is read on first use; unused splits may be unreadable.

    Two files of the same split (val.tsv and dev.tsv) raise an error when that split is used.
    """

    def __init__(self, data: str, parts: Iterable[Part[Content]]) -> None:
        self._place = data
        self._parts: dict[str, list[Part[Content]]] = {}
        self._contents: dict[str, Content] = {}
        for part in parts:
            self._parts.setdefault(split_name(part.split), []).append(part)

    def __getitem__(self, split: str) -> Content:
        if split not in self._contents:
            parts = self._parts[split]
            if len(parts) > 1:
                names = " and ".join(part.name for part in parts)
                raise CorpusError(
                    f"{self._place} has {names} for the split {split}. Keep one; rename or move the others."
                )
            self._contents[split] = parts[0].read()
        return self._contents[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, split: object) -> bool:
        return split in self._parts


def files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The files of a folder with one of these endings, in the order of the endings."""
    return [file for suffix in suffixes for file in sorted(folder.glob(f"*{suffix}")) if file.is_file()]


def split_files(folder: Path, suffixes: Sequence[str]) -> Splits[Path]:
    """The files of a folder with one of these endings, by split."""
    files = files_in(folder, suffixes)
    if not files:
        raise CorpusError(f"{folder} has no {' or '.join(suffixes)} files.")
    return Splits(str(folder), (Part(file.stem, file.name, partial(Path, file)) for file in files))


def split_of(splits: Mapping[str, Content], split: str | None, data: str) -> Content:
    """The split of this name; without a name the only one."""
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None:
        raise CorpusError(f"{data} has the splits {', '.join(splits)}; name one with split= (--split).")
    if split_name(split) not in splits:
        raise UnknownName(f"split of {data}", split, splits)
    return splits[split_name(split)]


def read_hub(name: str) -> Splits[Any]:
    """The splits of a data set of the hub, name[:config], memory-mapped by `datasets`."""
    from datasets import load_dataset

    dataset, _, config = name.partition(":")
    try:
        loaded = load_dataset(dataset, config or None)
    except Exception as error:  # the hub fails in many ways
        raise CorpusError(f"Cannot load the data set {name}: {error}.") from error
    return Splits(name, (Part(str(split), str(split), partial(loaded.__getitem__, split)) for split in loaded))
