"""Evaluation of a model: how good it is at its task, with an interval; of a translation model also what it writes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sacrebleu.metrics.chrf import CHRF
from torch import nn

from headcount.corpora.ragged import Ragged
from headcount.record import Record, Signature
from headcount.record.result import Quality as Measured
from headcount.record.results.evaluate import Evaluation
from headcount.sites.fingerprint import weight_hash
from headcount.sites.inputs import position_limit
from headcount.statistics import bootstrap_interval
from headcount.studies.source import warn_of_cuts
from headcount.tasks.task import Quality, Task
from headcount.tasks.translation import Translation
from headcount.tasks.translation.bleu import COLUMNS
from headcount.tasks.translation.decoding import Progress, decode

if TYPE_CHECKING:
    from datasets import Dataset


def evaluate(model: nn.Module, task: Task, *, name: str, data: str) -> Record[Evaluation]:
    """The quality of a model at a task with its 95% interval over examples, and what else the task measures."""
    quality = task.quality(model)
    measures: dict[str, float] = task.held_out(model) if hasattr(task, "held_out") else {}
    parts = Evaluation(
        task=task.name,
        quality=_with_interval(quality),
        measures={quality.name: quality.value, **_besides(quality, measures)},
        examples=len(quality.statistics),
        columns=(),
        statistics=tuple(map(tuple, quality.statistics.tolist())),
        settings={},
    )
    arguments = {"task": task.name, "data": data, **quality.signature.arguments}
    return Record("evaluate", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def _with_interval(quality: Quality) -> Measured:
    _, low, high = bootstrap_interval(quality.statistics, quality.metric.of_sums)
    return Measured(quality.name, quality.value, low, high)


def _besides(quality: Quality, measures: Mapping[str, float]) -> dict[str, float]:
    """Measures that say something else than the quality does."""
    return {name: value for name, value in measures.items() if not math.isclose(value, quality.value)}


def evaluate_translation(
    model: nn.Module,
    tokenizer: Any,
    pairs: Dataset,
    *,
    name: str,
    data: str,
    limit: int | None = None,
    progress: Progress = lambda *_: None,
    **decoding: Any,
) -> Record[Evaluation]:
    """BLEU and chrF of the model's translations, loss and accuracy of its predictions; sentence by sentence too."""
    rows = pairs.select(range(min(limit or len(pairs), len(pairs))))
    most = position_limit(model)
    source, target = list(rows["source"]), list(rows["target"])
    task = Translation(source=source, target=target, tokenizer=tokenizer, max_length=most, **decoding)
    warn_of_cuts(int((task.lengths.max(1) >= most).sum()) if most else 0, most)
    written = task.translations(model, progress=progress)
    quality, chrf = task.judge(written), CHRF(lowercase=bool(decoding.get("lowercase")))
    held_out = task.held_out(model)
    parts = Evaluation(
        task=task.name,
        quality=replace(_with_interval(quality), metric="BLEU"),
        measures={
            "BLEU": quality.value,
            "chrF": chrf.corpus_score(written, [list(task.target)]).score,
            "loss": held_out["loss"],
            "token accuracy": held_out["token_accuracy"],
        },
        examples=len(written),
        columns=tuple(COLUMNS),
        statistics=tuple(map(tuple, quality.statistics.tolist())),
        settings={"BLEU": quality.signature.arguments["metric"], "chrF": str(chrf.get_signature())},
        translations=tuple(written),
    )
    arguments = {"data": data, **{key: value for key, value in quality.signature.arguments.items() if key != "metric"}}
    return Record("evaluate", Signature(name, weight_hash(model), task.fingerprint, arguments=arguments), parts)


def translate(model: nn.Module, tokenizer: Any, sentences: Sequence[str], **decoding: Any) -> list[str]:
    """The model's translation of each sentence; an empty one stays empty."""
    real = [place for place, sentence in enumerate(sentences) if sentence.strip()]
    found = [""] * len(sentences)
    if not real:
        return found
    most = position_limit(model)
    rows = tokenizer([sentences[place] for place in real], truncation=bool(most), max_length=most)["input_ids"]
    warn_of_cuts(sum(len(row) == most for row in rows), most)
    ids = Ragged.of(rows)
    written = tokenizer.batch_decode(
        decode(model, ids, padding=tokenizer.pad_token_id, **decoding), skip_special_tokens=True
    )
    for place, text in zip(real, written, strict=True):
        found[place] = text
    return found
