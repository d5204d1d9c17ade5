"""TextTask: base class of tasks on texts."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from torch import nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.examples import example_hash
from headcount.corpora.plain import SUFFIX
from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.errors import UsageError
from headcount.hooks import configured_module
from headcount.metrics import Metric
from headcount.sites.rotary import scalings
from headcount.tasks.batch import Batch, Batches, chunks, fingerprint
from headcount.tasks.quality import Quality
from headcount.tasks.task import FIRST, USUAL, Reading, Task, check_texts, chosen_metric
from headcount.tasks.texts import check_tokenizer, warn_of_repeats, warn_of_unknown_words


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
        self._texts, self._pairs = check_texts(texts), None if pairs is None else check_texts(pairs, "pairs")
        check_tokenizer(tokenizer, max_length, paired=pairs is not None)
        warn_of_unknown_words(self._texts, tokenizer)
        warn_of_repeats(self._texts if self._pairs is None else list(zip(self._texts, self._pairs, strict=False)))
        _warn_of_double_starts(self._texts, tokenizer)
        self.tokenizer, self._max_length = tokenizer, max_length
        self._chunks = list(chunks(len(self._texts), batch_size))
        self._fingerprint = fingerprint([self._texts, *hashed])
        self.identity = {"batch_size": batch_size, "max_length": max_length}

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @cached_property
    def example_hashes(self) -> Sequence[str]:
        columns = [self._texts] if self._pairs is None else [self._texts, self._pairs]
        return [example_hash(*texts) for texts in zip(*columns, strict=True)]

    @cached_property
    def lengths(self) -> np.ndarray:
        """[N, 2]: tokens of each text, and 0."""
        blocks = chunks(len(self), 1000)
        lengths = [len(ids) for rows in blocks for ids in self._tokenized(rows)["input_ids"]]
        return np.stack([lengths, np.zeros(len(self), dtype=np.int64)], axis=1)

    def batches(self) -> Iterator[Batch]:
        return Batches(self.batch, self._chunks)

    def first_batch(self) -> Batch:
        return self.batch(range(min(FIRST, len(self))))

    def check(self, model: nn.Module) -> None:
        self._warn_of_rotary_positions(model)
        super().check(model)

    def _warn_of_rotary_positions(self, model: nn.Module) -> None:
        """Warn if texts depend on the longest one in their batch, because rotary positions are scaled for all of it."""
        scaled = scalings(model)
        if not scaled or max(map(len, self._chunks)) == 1:
            return
        lengths_N = self.lengths[:, 0]
        for scaling in scaled:
            changed = 0
            for rows in self._chunks:
                alone = [scaling.frequencies(int(length)) for length in lengths_N[rows]]
                changed += sum(number != max(alone) for number in alone)
            if changed:
                limit, beyond = scaling.limit, int((lengths_N > scaling.limit).sum())
                longer = "1 text is longer" if beyond == 1 else f"{beyond} texts are longer"
                warnings.warn(
                    f"{type(configured_module(model)).__name__} scales the rotary positions of a whole batch "
                    f"({scaling.name}) if a text has more than {limit} tokens: {longer}, and {changed} of {len(self)} "
                    "depend on a longer one in their batch. Measure with batch_size=1 (--batch-size 1), or with "
                    f"max_length={limit} (--max-length {limit}).",
                    stacklevel=2,
                )
                return

    def _encode(self, rows: Iterable[int]) -> Any:
        """The output of the tokenizer (input_ids, attention_mask, ...) as tensors padded to the longest text.

        Padding goes to the right, whatever side the tokenizer prefers: GPT-2 and others count positions from the left,
        and a text must not depend on how long the others in its batch are.
        """
        options: dict[str, Any] = {"padding_side": "right", "return_tensors": "pt"}
        encoded = self._tokenized(list(rows), padding=True, **options)
        if encoded["input_ids"].shape[1]:
            return encoded
        # Texts without tokens alone are padded as beside others: models do not read batches without columns.
        return self._tokenized(list(rows), padding="max_length", max_length=1, **options)

    def _tokenized(self, rows: Sequence[int], **options: Any) -> Any:
        if self._max_length:
            options = {"truncation": True, "max_length": self._max_length, **options}
        pairs = [self._pairs[row] for row in rows] if self._pairs is not None else None
        return self._padding_tokenizer([self._texts[row] for row in rows], pairs, **options)

    def is_read_alike(self, tokenizer: PreTrainedTokenizerBase) -> bool:
        """Whether another tokenizer gives the same tokens for all texts."""
        other = copy.copy(self)
        other.tokenizer = tokenizer
        vars(other).pop("_padding_tokenizer", None)  # of the first
        return all(self._tokenized(rows).input_ids == other._tokenized(rows).input_ids for rows in self._chunks)

    @cached_property
    def _padding_tokenizer(self) -> Any:
        """The tokenizer, or a copy that pads with the end token if it has no padding token (Llama, GPT-2)."""
        if self.tokenizer.pad_token is not None:
            return self.tokenizer
        if self.tokenizer.eos_token is None:
            raise UsageError(
                "The tokenizer has neither a padding nor an end token, so texts cannot be batched. "
                "Set tokenizer.pad_token to one of its tokens."
            )
        padded = copy.deepcopy(self.tokenizer)
        padded.pad_token = padded.eos_token
        return padded


def _warn_of_double_starts(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> None:
    """Warn of texts that begin with a token which the tokenizer adds too, as chat templates write it."""
    starts = {getattr(tokenizer, name, None) or "" for name in ("bos_token", "cls_token")}
    for start in starts - {""}:
        number = sum(text.startswith(start) for text in texts)
        if number and tokenizer(start).input_ids[:2] == [tokenizer.convert_tokens_to_ids(start)] * 2:
            begin = "1 text begins" if number == 1 else f"{number} texts begin"
            warnings.warn(
                f"{begin} with {start}, which the tokenizer adds too: the model reads it twice. Remove it from the "
                "texts (chat templates write it).",
                stacklevel=4,
            )


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
