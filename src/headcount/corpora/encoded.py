"""Encoded pairs: parallel text as token ids, memory-mapped. Knows tokenizers, not models."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount import journal
from headcount.corpora.ragged import Ragged
from headcount.corpora.target_language import target_ids

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def encode(
    pairs: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int | None = None,
    drop: bool = False,
    file: Path | None = None,
) -> Dataset:
    """The columns `source` and `target` as ids, `source_ids` and `target_ids`.

    max_length: longer sentences are truncated, or with `drop` skipped, so that there are fewer rows than pairs.
    file: cache file, reused if it exists. Without it, ids stay in memory.
    """
    from datasets import Dataset, Features, List, Value

    if file is not None and file.is_file():
        return Dataset.from_file(str(file))
    cut = {"truncation": True, "max_length": max_length} if max_length and not drop else {}

    def ids(batch: Mapping[str, list[str]]) -> dict[str, Any]:
        source = tokenizer(batch["source"], **cut)["input_ids"]
        target = target_ids(tokenizer, batch["target"], **cut)
        fits = [
            not (drop and max_length) or max(map(len, pair)) <= max_length for pair in zip(source, target, strict=True)
        ]
        return {"source_ids": list(compress(source, fits)), "target_ids": list(compress(target, fits))}

    def encoded(cache: Path | None) -> Dataset:
        return pairs.map(
            ids,
            batched=True,
            remove_columns=pairs.column_names,
            features=Features({"source_ids": List(Value("int32")), "target_ids": List(Value("int32"))}),
            cache_file_name=str(cache) if cache else None,
            keep_in_memory=cache is None,
            load_from_cache_file=False,
            new_fingerprint="encoded",  # the file name identifies it; hashing the tokenizer would be slow
        )

    if file is None or not len(pairs):  # datasets writes no file for an empty data set
        return encoded(None)
    with journal.new_file(file) as fresh:  # datasets leaves a temporary file behind when it is killed
        encoded(fresh)
    return Dataset.from_file(str(file))


def sides(encoded: Dataset) -> tuple[Ragged, Ragged]:
    """Source and target ids by row, read from the data set without a copy."""
    return Ragged.of_column(encoded, "source_ids"), Ragged.of_column(encoded, "target_ids")
