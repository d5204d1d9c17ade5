"""Translation: sentence pairs; quality is BLEU of the model's output, with statistics of each sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics.chrf import CHRF
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.encoded import encode, sides
from headcount.corpora.examples import example_hash
from headcount.corpora.ragged import Ragged
from headcount.corpora.sentences import Sentences
from headcount.corpora.source import Source
from headcount.corpora.target_language import target_ids
from headcount.errors import UsageError
from headcount.hooks import config_of, configured_module
from headcount.metrics import LOSS, PERPLEXITY
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.sites.decoder_input import IGNORED, decoder_input
from headcount.sites.devices import input_device
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch, Batches, fingerprint
from headcount.tasks.quality import Evaluation, Quality
from headcount.tasks.soundness import check_finite, check_ids
from headcount.tasks.task import USUAL, Reading, Task, check_texts, chosen_metric
from headcount.tasks.texts import check_length, check_tokenizer, warn_of_repeats, warn_of_unknown_words
from headcount.tasks.translation.bleu import COLUMNS, METRIC, bleu_statistics, tokenization
from headcount.tasks.translation.decoding import LENGTH_PENALTY, by_length, check_language, decode
from headcount.tasks.translation.drafts import Drafts, can_draft

_SAMPLE = 16  # references with capitals that are looked at
METRICS = {"bleu": METRIC, "loss": LOSS, "perplexity": PERPLEXITY}


class Translation(Task):
    """Source and target sentences with the tokenizer that reads both sides."""

    name = "translation"
    predicts = trains = writes = True
    measured_by = "the loss of each target token given the source and the target tokens before it"

    def __init__(
        self,
        *,
        source: Sequence[str],
        target: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        tokens: int = 4096,
        max_length: int | None = None,
        smoothing: float = 0.1,
        beams: int = 1,
        length_penalty: float = LENGTH_PENALTY,
        lowercase: bool = False,
        metric: str = "bleu",
        encoded: tuple[Ragged, Ragged] | None = None,
    ) -> None:
        """tokens: padded source tokens of a batch. max_length: truncate sentences to this many tokens.
        smoothing: label smoothing, in `loss` only. beams, length_penalty, lowercase: how `quality` decodes and
            compares.
        metric: bleu; or loss or perplexity, per target token given those before it, which need no decoding.
        encoded: token ids of both sides, if they exist already.
        """
        self.metric = chosen_metric(metric, METRICS, self.name)
        if encoded is None:  # else the texts may be memory-mapped columns, which are not copied
            check_tokenizer(tokenizer, max_length)
            source, target = check_texts(source, "source"), check_texts(target, "target")
            encoded = _encoded(source, target, tokenizer, max_length)
            warn_of_repeats(source)  # of several translations of a sentence, the encoder's part is the same
        if len(source) != len(target):
            raise UsageError(f"There are {len(source)} source and {len(target)} target sentences; they come in pairs.")
        warn_of_unknown_words(source, tokenizer)
        self.source, self.target = source, target
        self.source_ids, self.target_ids = encoded
        self.tokenizer, self.smoothing = tokenizer, smoothing
        self._tokens = tokens
        self._decoding: dict[str, Any] = {"beams": beams, "length_penalty": length_penalty}
        self._lowercase = lowercase
        self.identity = {"tokens": tokens, "lowercase": lowercase, **self._decoding}

    @classmethod
    def read(cls, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> Translation:
        pairs = source.pairs()
        pairs = pairs.select(source.rows(zip(pairs["source"], pairs["target"], strict=True)))
        reading = replace(reading, decoding={**reading.decoding, "lowercase": source.lowercase})
        return cls.of_texts(list(pairs["source"]), tokenizer, reading, targets=list(pairs["target"]))

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        reading: Reading = USUAL,
        *,
        targets: Sequence[str] | None = None,
    ) -> Translation:
        options = {"max_length": reading.max_length, **reading.named_metric, **reading.decoding}
        return cls(source=texts, target=targets or (), tokenizer=tokenizer, **options)

    @classmethod
    def splits(cls, source: Source) -> tuple[str, ...]:
        return () if source.kind == "file" else tuple(source.parallel().splits)

    @classmethod
    def sentences(cls, source: Source) -> Sentences:
        """Sentences of the data, with trees if it has them."""
        if not source.columns:
            return source.sentences()
        pairs = source.pairs()
        return Sentences(list(pairs["source"]), list(pairs["target"]))

    @classmethod
    def training_texts(cls, source: Source) -> Sequence[str] | None:
        splits = source.parallel().splits
        return splits["train"]["source"] if "train" in splits else None

    def __len__(self) -> int:
        return len(self.source_ids)

    @cached_property
    def fingerprint(self) -> str:
        """Of token ids and references: BLEU compares texts, also those that differ in unknown characters alone."""
        ids = (row.tobytes() for side in (self.source_ids, self.target_ids) for row in side)
        return fingerprint(chain(ids, self.target))

    @cached_property
    def example_hashes(self) -> list[str]:
        """[N]: a hash of each pair of sentences."""
        return [example_hash(*pair) for pair in zip(self.source, self.target, strict=True)]

    @property
    def lengths(self) -> np.ndarray:
        """[N, 2]: tokens of each source and target sentence."""
        return np.stack([self.source_ids.lengths, self.target_ids.lengths], axis=1)

    def batches(self) -> Iterator[Batch]:
        """Batches of sentences of similar length, the longest first."""
        return Batches(self.batch, list(self.rows()))

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        source_BT, mask_BT = self._source(rows)
        labels_BT = torch.from_numpy(self.target_ids.padded(rows, IGNORED))
        return {"input_ids": source_BT, "attention_mask": mask_BT, "labels": labels_BT}

    def _source(self, rows: Sequence[int] | np.ndarray) -> tuple[Tensor, Tensor]:
        """[B, T] each: padded source ids, and their mask."""
        tables = self.source_ids.padded(rows, self.tokenizer.pad_token_id), self.source_ids.mask(rows)
        return torch.from_numpy(tables[0]), torch.from_numpy(tables[1])

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        """Number of tokens that `loss_sum` sums over."""
        return int(self.target_ids.lengths[rows].sum())

    def check(self, model: nn.Module) -> None:
        super().check(model)
        beginnings = _beginnings(model, self.tokenizer)
        if beginnings and len(self.source) and not any(text.startswith(beginnings) for text in self.source):
            warnings.warn(
                f"{type(configured_module(model)).__name__} reads at the beginning of a source sentence what it has to "
                f"do ({', '.join(map(repr, beginnings[:3]))}{', ...' * (len(beginnings) > 3)}), but no sentence begins "
                "so: its output may be no translation, or in another language. Write it before each source sentence, "
                "unless the model was trained without.",
                stacklevel=3,
            )

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        logits_BTV, labels_BT = _predict(model, batch)
        nll_B = _cross_entropy(logits_BTV, labels_BT).view_as(labels_BT).sum(-1)
        check_finite(model, nll_B, "losses")
        return nll_B

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Smoothed loss summed over target tokens."""
        return _cross_entropy(logits, batch["labels"].to(logits.device), self.smoothing).sum()

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        return _predict(model, batch)[0]

    def predicted(self, batch: Batch) -> Tensor:
        return batch["labels"] != IGNORED

    def answered(self, model: nn.Module) -> Translation:
        """The same sentences with the model's output as targets."""
        written = self.written(model)
        texts = self.tokenizer.batch_decode(written, skip_special_tokens=True)
        encoded = self.source_ids, Ragged.of(written)
        return Translation(
            source=self.source, target=texts, tokenizer=self.tokenizer, tokens=self._tokens, encoded=encoded
        )

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Loss per target token without smoothing, and token accuracy with the reference as input."""
        loss = right = tokens = 0.0
        with evaluating(model):
            for batch in self.batches():
                logits_BTV, labels_BT = _predict(model, batch)
                loss += float(_cross_entropy(logits_BTV, labels_BT).sum())
                right += float((logits_BTV.argmax(-1) == labels_BT).sum())
                tokens += float((labels_BT != IGNORED).sum())
        return {"loss": loss / tokens, "token_accuracy": right / tokens}

    def rows(self) -> Iterator[np.ndarray]:
        return by_length(self.source_ids.lengths, self._tokens)

    @property
    def in_one_run(self) -> bool:
        return self.metric is not METRICS["bleu"]

    def drafts(self, model: nn.Module) -> bool:
        return not self.in_one_run and self._decoding["beams"] == 1 and can_draft(model)

    def written(self, model: nn.Module, rows: np.ndarray | None = None) -> list[list[int]]:
        check_language(model, self.tokenizer)
        source = self.source_ids if rows is None else Ragged.of([self.source_ids[row] for row in rows])
        padding, end = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        rows_of_ids = decode(model, source, padding=padding, tokens=self._tokens, **self._decoding)
        outputs = (row[1:] for row in rows_of_ids)  # without the start token, and without padding after the end token
        return [ids[: ids.index(end) + 1] if end in ids else ids for ids in outputs]

    def drafted(self, model: nn.Module, rows: np.ndarray, drafts: Sequence[Sequence[int]]) -> Drafts:
        return Drafts.of(model, *self._source(rows), drafts, self.tokenizer.pad_token_id)

    def statistics(self, rows: np.ndarray, written: Sequence[Sequence[int]]) -> np.ndarray:
        texts = self.tokenizer.batch_decode([list(ids) for ids in written], skip_special_tokens=True)
        return bleu_statistics(texts, [self.target[row] for row in rows], **self._comparison)[0]

    def translations(self, model: nn.Module, *, progress: Progress = silent) -> list[str]:
        """The model's output for each source sentence."""
        self.check(model)
        check_language(model, self.tokenizer)
        padding = self.tokenizer.pad_token_id
        ids = decode(model, self.source_ids, padding=padding, tokens=self._tokens, progress=progress, **self._decoding)
        return [str(text) for text in self.tokenizer.batch_decode(ids, skip_special_tokens=True)]

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: negative log-likelihood and tokens of each target; for metrics that need no decoding."""
        tokens_B = (batch["labels"] != IGNORED).sum(-1).numpy()
        return np.stack([self.nll(model, batch).double().cpu().numpy(), tokens_B], axis=1)

    def quality(self, model: nn.Module, *, progress: Progress = silent) -> Quality:
        if not self.in_one_run:
            return self.judge(self.translations(model, progress=progress))
        quality = super().quality(model)
        order = np.concatenate(list(self.rows()))
        statistics = np.empty_like(quality.statistics)
        statistics[order] = quality.statistics  # in the order of the sentences
        return replace(quality, statistics=statistics)

    def evaluation(self, model: nn.Module, progress: Progress = silent) -> Evaluation:
        """BLEU and chrF of the model's output, loss and token accuracy, with statistics of each sentence."""
        written = self.translations(model, progress=progress)
        quality, chrf = self.judge(written), CHRF(lowercase=self._lowercase)
        held_out = self.held_out(model)
        measures = {
            "BLEU": quality.value,
            "chrF": chrf.corpus_score(written, [list(self.target)]).score,
            "loss": held_out["loss"],
            "token accuracy": held_out["token_accuracy"],
        }
        settings = {"BLEU": str(quality.signature.arguments["metric"]), "chrF": str(chrf.get_signature())}
        return Evaluation(quality, measures, tuple(COLUMNS), settings, tuple(written))

    @cached_property
    def _comparison(self) -> dict[str, Any]:
        """How BLEU compares texts: alike for all of the data, whatever sentences are compared."""
        if not self._lowercase:
            _warn_of_lost_capitals(self.target, self.tokenizer)
        return {"lowercase": self._lowercase, "tokenize": tokenization(self.target)}

    def judge(self, written: Sequence[str]) -> Quality:
        """BLEU of translations against the targets."""
        statistics_N10, bleu_signature = bleu_statistics(written, list(self.target), **self._comparison)
        arguments = {"metric": f"BLEU|{bleu_signature}", **self._decoding}
        signature = Signature(data=self.fingerprint, arguments=arguments)
        return Quality.of(METRICS["bleu"], statistics_N10, signature)


def _encoded(
    source: list[str], target: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None
) -> tuple[Ragged, Ragged]:
    from datasets import Dataset

    if len(source) != len(target):
        raise UsageError(f"There are {len(source)} source and {len(target)} target sentences; they come in pairs.")
    pairs = Dataset.from_dict({"source": source, "target": target})
    return sides(encode(pairs, tokenizer, max_length=max_length))


def _warn_of_lost_capitals(targets: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> None:
    """Warn if references have capitals, and the tokenizer writes none: BLEU counts every such word as wrong."""
    cased = list(islice((text for text in targets if text != text.lower()), _SAMPLE))
    if not cased:
        return
    written = tokenizer.batch_decode(target_ids(tokenizer, cased), skip_special_tokens=True)
    if all(text == text.lower() for text in written):
        warnings.warn(
            f"References have capitals ({cased[0]!r:.40}), but the tokenizer lowercases: BLEU and chrF count every "
            "word with a capital as wrong. Compare without regard to case: lowercase=True (--lowercase).",
            stacklevel=4,
        )


def _beginnings(model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> tuple[str, ...]:
    """What sources begin with: the instructions of T5, or one of several target languages of Marian models."""
    of_tasks = (getattr(config_of(model), "task_specific_params", None) or {}).values()
    instructions = tuple(settings["prefix"] for settings in of_tasks if settings.get("prefix"))
    languages = tuple(getattr(tokenizer, "supported_language_codes", ()))
    return instructions or (languages if len(languages) > 1 else ())


def _predict(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits [B, T, V] and labels [B, T] of every target token given those before it."""
    config = config_of(model)
    if not getattr(config, "is_encoder_decoder", False):
        raise UsageError(f"Translation needs an encoder-decoder model; {config.model_type} is not one.")
    check_length(model, max(batch["input_ids"].shape[1], batch["labels"].shape[1]))
    check_ids(model, batch["input_ids"])
    device = input_device(model)
    labels_BT = batch["labels"].to(device)
    logits_BTV: Tensor = model(
        input_ids=batch["input_ids"].to(device),
        attention_mask=batch["attention_mask"].to(device),
        decoder_input_ids=decoder_input(labels_BT, config),
        use_cache=False,
    ).logits
    return logits_BTV, labels_BT


def _cross_entropy(logits_BTV: Tensor, labels_BT: Tensor, smoothing: float = 0.0) -> Tensor:
    """[B * T]: cross-entropy of each token; 0 at padding."""
    logits, labels = logits_BTV.float().flatten(0, 1), labels_BT.flatten()
    return nn.functional.cross_entropy(
        logits, labels, ignore_index=IGNORED, reduction="none", label_smoothing=smoothing
    )
