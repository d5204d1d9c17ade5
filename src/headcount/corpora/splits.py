"""Splits: the parts of a data set by name, as files of a folder or as a data set of the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from headcount.errors import CorpusError, UnknownName

_SYNONYMS = {"valid": "dev", "val": "dev", "validation": "dev"}
Part = TypeVar("Part")


def split_name(name: str) -> str:
    """One name for what is called many: validation is dev."""
    return _SYNONYMS.get(name, name)


def split_files(folder: Path, suffixes: Sequence[str]) -> dict[str, Path]:
    """The files of a folder with one of these endings, by split."""
    files = {split_name(file.stem): file for suffix in suffixes for file in sorted(folder.glob(f"*{suffix}"))}
    if not files:
        raise CorpusError(f"{folder} has no {' or '.join(suffixes)} files.")
    return files


def split_of(splits: Mapping[str, Part], split: str | None, place: str) -> Part:
    """The split asked for; without a name the only one."""
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None:
        raise CorpusError(f"{place} has the splits {', '.join(splits)}; say which.")
    if split_name(split) not in splits:
        raise UnknownName(f"split of {place}", split, splits)
    return splits[split_name(split)]


def read_hub(name: str) -> dict[str, Any]:
    """The splits of a data set of the hub, name[:config], memory-mapped by `datasets`."""
    from datasets import load_dataset

    dataset, _, config = name.partition(":")
    try:
        loaded = load_dataset(dataset, config or None)
    except Exception as error:  # the hub fails in many ways
        raise CorpusError(f"Cannot load the data set {name}: {error}.") from error
    return {split_name(str(split)): rows for split, rows in loaded.items()}
