"""TextTask: base class of tasks on texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import nn

from headcount.corpora.plain import SUFFIX
from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.errors import UsageError
from headcount.metrics import Metric
from headcount.tasks.task import (
    USUAL,
    Batch,
    Batches,
    Quality,
    Reading,
    Task,
    check_texts,
    chosen_metric,
    chunks,
    fingerprint,
)
from headcount.tasks.texts import Texts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class TextTask(Task):
    """Texts with the tokenizer that reads them."""

    METRICS: ClassVar[Mapping[str, Metric]]

    def __init__(
        self,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        *,
        metric: str,
        batch_size: int,
        max_length: int | None,
        pairs: Sequence[str] | None = None,
        hashed: Sequence[object] = (),
    ) -> None:
        """pairs: second texts. hashed: further data to include in the fingerprint."""
        self.metric = chosen_metric(metric, self.METRICS, self.name)
        checked = check_texts(texts)
        checked_pairs = None if pairs is None else check_texts(pairs, "pairs")
        self.tokenizer = tokenizer
        self._texts = Texts(checked, tokenizer, checked_pairs, max_length)
        self._chunks = list(chunks(len(checked), batch_size))
        self._fingerprint = fingerprint([checked, *hashed])
        self.identity = {"batch_size": batch_size, "max_length": max_length}

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def example_hashes(self) -> Sequence[str]:
        return self._texts.hashes

    @property
    def lengths(self) -> np.ndarray:
        """[N, 2]: tokens of each text, and 0."""
        return np.stack([self._texts.lengths, np.zeros(len(self), dtype=np.int64)], axis=1)

    def batches(self) -> Iterator[Batch]:
        return Batches(self.batch, self._chunks)


class PlainTextTask(TextTask):
    """A task on texts without labels."""

    suffixes = (SUFFIX,)
    lacking = ""  # why quality is not defined if there are no predictions at all

    def __init__(
        self,
        *,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        batch_size: int = 16,
        max_length: int | None = None,
        metric: str | None = None,
        hashed: Sequence[object] = (),
    ) -> None:
        """metric: name of one of METRICS, by default the first. hashed: as in `TextTask`."""
        super().__init__(
            texts, tokenizer, metric=metric or next(iter(self.METRICS)), batch_size=batch_size, max_length=max_length,
            hashed=[max_length, *hashed],
        )  # fmt: skip

    def quality(self, model: nn.Module) -> Quality:
        quality = super().quality(model)
        if self.lacking and not quality.statistics[:, 1].any():
            raise UsageError(self.lacking)
        return quality

    @classmethod
    def read(cls, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> Task:
        texts = source.plain()
        rows = source.rows(zip(texts, strict=True))
        return cls.of_texts([texts[row] for row in rows], tokenizer, reading)

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        reading: Reading = USUAL,
        *,
        targets: Sequence[str] | None = None,
    ) -> Task:
        return cls(
            texts=texts, tokenizer=tokenizer, batch_size=reading.batch_size, max_length=reading.max_length,
            **reading.named_metric, **cls._further(reading),
        )  # fmt: skip

    @classmethod
    def _further(cls, reading: Reading) -> dict[str, Any]:
        """Further arguments of the task."""
        return {}

    @classmethod
    def sentences(cls, source: Source) -> Sentences:
        lines = source.plain()
        return Sentences(lines, None, lines.skipped)
