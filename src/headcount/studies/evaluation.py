"""Evaluation of a model: its quality at its task with an interval; for translation models also the translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from headcount.corpora.ragged import Ragged
from headcount.progress import Progress, silent
from headcount.record import Record, Signature
from headcount.record.result import Quality as Measured
from headcount.record.results.evaluate import Evaluation
from headcount.sites.fingerprint import weight_hash
from headcount.sites.inputs import position_limit
from headcount.statistics import counted
from headcount.studies.workload import warn_of_cuts
from headcount.tasks.overlap import Examples, measured_on
from headcount.tasks.task import Task
from headcount.tasks.translation.decoding import check_language, decode

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def evaluate(
    model: nn.Module,
    task: Task,
    *,
    name: str,
    data: str,
    against: str | None = None,
    chosen_on: Sequence[Examples] = (),
    progress: Progress = silent,
) -> Record[Evaluation]:
    """The quality of a model at a task with its 95% interval over examples, and further measures of the task.

    against: name of the model whose embeddings are the reference.
    chosen_on: examples that the heads of a pruned model were chosen on; the record says how many are measured on.
    """
    assessed = task.evaluation(model, progress)
    quality = assessed.quality
    _, low, high = quality.interval()
    parts = Evaluation(
        task=task.name,
        quality=Measured(next(iter(assessed.measures)), quality.value, low, high),
        measures=dict(assessed.measures),
        examples=len(counted(quality.statistics)),
        columns=assessed.columns,
        statistics=tuple(map(tuple, quality.statistics.tolist())),
        settings=assessed.settings,
        translations=assessed.translations,
        measured_on=measured_on(chosen_on, task) if chosen_on else None,
    )
    arguments = {"task": task.name, "data": data, **quality.signature.arguments}
    arguments |= {"against": against} if against else {}
    return Record("evaluate", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def translate(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], **decoding: Any
) -> list[str]:
    """The model's translation of each sentence; empty for an empty sentence."""
    filled = [index for index, sentence in enumerate(sentences) if sentence.strip()]
    translations = [""] * len(sentences)
    if not filled:
        return translations
    check_language(model, tokenizer)
    most = position_limit(model)
    rows = tokenizer([sentences[index] for index in filled], truncation=bool(most), max_length=most)["input_ids"]
    warn_of_cuts(sum(len(row) == most for row in rows), most)
    ids = Ragged.of(rows)
    written = tokenizer.batch_decode(
        decode(model, ids, padding=tokenizer.pad_token_id, **decoding), skip_special_tokens=True
    )
    for index, text in zip(filled, written, strict=True):
        translations[index] = text
    return translations
