"""lm-eval: tasks of the lm-evaluation-harness, used only to measure quality, not for training.

The harness returns the value of every example, so that models can be compared example by example.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.corpora.source import Source
from headcount.errors import UnknownName, UsageError
from headcount.hooks import configured_module
from headcount.metrics import Metric, all_right, wrong_or_right
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch, fingerprint
from headcount.tasks.harness import PREFIX, task_names
from headcount.tasks.quality import Evaluation, Quality
from headcount.tasks.task import USUAL, Reading, Task

_ANSWERS = {"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"}  # metrics that are 0 or 1 on one example
_SEED = 1234  # of few-shot examples, the default of the harness
_Columns = Callable[[Any], tuple[float, float]]
_Ratio = Callable[[np.ndarray], np.ndarray]
# Aggregation of the harness -> (numerator, denominator) of one example, and a function of the ratio of their sums.
_AGGREGATIONS: dict[str, tuple[_Columns, _Ratio]] = {
    "mean": (lambda value: (float(value), 1.0), lambda ratio: ratio),
    "perplexity": (lambda value: (-float(value), 1.0), np.exp),
    "weighted_perplexity": (lambda value: (-float(value[0]), float(value[1])), np.exp),
    "bits_per_byte": (lambda value: (-float(value[0]), float(value[1])), lambda ratio: ratio / np.log(2)),
}
# (metric, its aggregation) -> the lowest and highest value it can have.
_BOUNDS = {
    **{(name, "mean"): (0.0, 1.0) for name in _ANSWERS},
    ("perplexity", "perplexity"): (1.0, inf),
    ("word_perplexity", "weighted_perplexity"): (1.0, inf),
    ("byte_perplexity", "weighted_perplexity"): (1.0, inf),
    ("bits_per_byte", "bits_per_byte"): (0.0, inf),
}


@dataclass(frozen=True)
class Measure:
    """The metric of one task of the harness."""

    task: str
    metric: str
    aggregation: str
    higher_is_better: bool


class LmEval(Task):
    """One or several tasks of the harness; the quality is the mean over tasks."""

    name = "lm-eval"
    measured_by = "tasks of the lm-evaluation-harness"

    def __init__(
        self,
        *,
        names: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        folder: str | None = None,
        batch_size: int = 16,
        max_length: int | None = None,
        metric: str | None = None,
        limit: int | None = None,
    ) -> None:
        """names: of tasks, or of task files (.yaml). folder: of further task files. limit: examples of each task.

        metric: one that all tasks have, such as acc_norm; the first of each if not given.
        """
        self.tokenizer, self.names = tokenizer, tuple(names)
        self._batch_size, self._max_length, self._limit = batch_size, max_length, limit
        self._tasks = _load(self.names, folder)
        self._measures = [_measure(name, task, metric) for name, task in self._tasks["tasks"].items()]
        self.metric = mean_over_tasks(self._measures)
        self.split = f"{PREFIX}{','.join(self.names)}"
        self.identity = {"tasks": list(self.names), "limit": limit, "max_length": max_length}
        documents = [list(task.eval_docs)[:limit] for task in self._tasks["tasks"].values()]
        self._fingerprint = fingerprint([self.names, limit, *documents])

    @classmethod
    def named(cls, name: str, source: Source, tokenizer: PreTrainedTokenizerBase, reading: Reading = USUAL) -> LmEval:
        """`lm-eval:TASK[,TASK]`; the source names a folder of further task files, and how many examples are read."""
        return cls(
            names=task_names(name), tokenizer=tokenizer, folder=source.data or None, batch_size=reading.batch_size,
            max_length=reading.max_length, metric=reading.metric, limit=source.limit,
        )  # fmt: skip

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def batches(self) -> Iterator[Batch]:
        raise self._lacks(
            "has no batches: the harness runs the model itself. Use it only to measure, with --measure-task"
        )

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        raise self._lacks("has no loss: use it only to measure, with --measure-task, and choose heads on other data")

    @property
    def in_one_run(self) -> bool:
        return False

    def quality(self, model: nn.Module) -> Quality:
        samples = self._run(model)
        count = len(self._measures)
        rows = [_statistics(samples[each.task], each, index, count) for index, each in enumerate(self._measures)]
        arguments = {"metric": self.metric.name, "tasks": list(self.names), "limit": self._limit}
        return Quality.of(self.metric, np.concatenate(rows), Signature(data=self.fingerprint, arguments=arguments))

    def evaluation(self, model: nn.Module, progress: Progress = silent) -> Evaluation:
        quality = self.quality(model)
        sums = quality.statistics.sum(0)
        each = {
            f"{measure.task} {measure.metric}": float(_value(sums, index, measure))
            for index, measure in enumerate(self._measures)
        }
        columns = tuple(f"{each.task} {part}" for each in self._measures for part in (each.metric, "weight"))
        besides = each if len(each) > 1 else {}
        return Evaluation(quality, {quality.name: quality.value, **besides}, columns, _version())

    def _run(self, model: nn.Module) -> Mapping[str, list[dict[str, Any]]]:
        """The samples that the harness logs, by task, in the order of the data."""
        from lm_eval.evaluator import evaluate

        for task in self._tasks["tasks"].values():
            task.set_fewshot_seed(_SEED)
        with evaluating(model), _without_bars():
            language_model = _harness_model(model, self.tokenizer, self._batch_size, self._max_length)
            results = evaluate(language_model, self._tasks, limit=self._limit, bootstrap_iters=0, log_samples=True)
        if results is None:
            raise UsageError("lm-eval gives its results to the first process only: run it in one process.")
        return {name: sorted(rows, key=lambda row: row["doc_id"]) for name, rows in results["samples"].items()}


TASK = LmEval


def _load(names: Sequence[str], folder: str | None) -> Any:
    """The tasks of the harness with these names, or in these files."""
    if importlib.util.find_spec("lm_eval") is None:
        raise UsageError("Tasks of lm-eval need the harness: pip install 'headcount[lm-eval]'.")
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    from lm_eval.tasks import TaskManager

    files = all(Path(name).is_file() for name in names)
    manager = TaskManager(include_path=folder, include_defaults=not files)
    try:
        return manager.load([str(Path(name).resolve()) if Path(name).is_file() else name for name in names])
    except KeyError as error:
        unknown = next((name for name in names if name in str(error)), names[0])
        raise UnknownName("lm-eval task (`lm-eval ls tasks` lists all)", unknown, manager.all_tasks) from error


def _measure(name: str, task: Any, metric: str | None) -> Measure:
    """The requested metric, or the first of the task."""
    aggregations = {key: getattr(function, "__name__", "") for key, function in task.aggregation().items()}
    usable = [key for key, aggregation in aggregations.items() if aggregation in _AGGREGATIONS]
    metric_name = metric or next(iter(usable), "")
    if metric_name not in usable:
        raise UsageError(
            f"The task {name} has no metric {metric_name!r} that is summed up from single examples; it has "
            f"{', '.join(usable) or 'none'}. Give another with --metric."
        )
    return Measure(name, metric_name, aggregations[metric_name], bool(task.higher_is_better()[metric_name]))


def mean_over_tasks(measures: Sequence[Measure]) -> Metric:
    """The mean over tasks that have an example: a resample of few examples of many tasks has none of some."""
    directions = {measure.higher_is_better for measure in measures}
    if len(directions) > 1:
        raise UsageError(
            "For some of these tasks a higher metric is better, for others a lower one: measure them separately."
        )
    names = list(dict.fromkeys(measure.metric for measure in measures))

    def of_sums(sums: np.ndarray) -> np.ndarray:
        values = np.stack([_value(sums, index, measure) for index, measure in enumerate(measures)])
        seen = np.stack([sums[..., 2 * index + 1] > 0 for index in range(len(measures))])
        return np.asarray(np.where(seen, values, 0.0).sum(0) / np.maximum(seen.sum(0), 1))

    name = names[0] if len(measures) == 1 else f"mean {' and '.join(names)}"
    point = 0.01 if _ANSWERS.issuperset(names) else 1.0
    lowest, highest = zip(
        *(_BOUNDS.get((measure.metric, measure.aggregation), (-inf, inf)) for measure in measures), strict=True
    )
    metric = Metric(
        name, of_sums, higher_is_better=directions.pop(), point=point, lowest=min(lowest), highest=max(highest)
    )
    answers = len(measures) == 1 and name in _ANSWERS
    return replace(metric, answers=wrong_or_right, right=all_right) if answers else metric


def _value(sums: np.ndarray, index: int, measure: Measure) -> np.ndarray:
    """The metric of one task, of sums [..., 2 x tasks]."""
    ratio = sums[..., 2 * index] / np.maximum(sums[..., 2 * index + 1], 1e-300)
    return _AGGREGATIONS[measure.aggregation][1](ratio)


def _statistics(samples: Sequence[Mapping[str, Any]], measure: Measure, index: int, tasks: int) -> np.ndarray:
    """[N, 2 x tasks]: statistics of the examples of one task; if answers are filtered in several ways, of the first."""
    filter_name = samples[0]["filter"]
    columns = _AGGREGATIONS[measure.aggregation][0]
    rows = [columns(sample[measure.metric]) for sample in samples if sample["filter"] == filter_name]
    table = np.zeros((len(rows), 2 * tasks))
    table[:, 2 * index : 2 * index + 2] = rows
    return table


@contextmanager
def _without_bars() -> Iterator[None]:
    """No progress bars of the harness, of which it shows some for each measurement, and others for each batch."""
    from lm_eval.api import model, task
    from lm_eval.models import huggingface

    modules = (task, model, huggingface)
    bars = [module.tqdm for module in modules]
    for module, bar in zip(modules, bars, strict=True):
        module.tqdm = _hidden(bar)
    try:
        yield
    finally:
        for module, bar in zip(modules, bars, strict=True):
            module.tqdm = bar


def _hidden(bar: Any) -> Callable[..., Any]:
    """A progress bar that is not shown, even if the harness asks for it."""
    return lambda *arguments, **options: bar(*arguments, **{**options, "disable": True})


def _harness_model(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, batch_size: int, max_length: int | None
) -> Any:
    """The model wrapped for the harness. Masks attached to the model stay in effect."""
    from lm_eval.models.huggingface import HFLM

    live = configured_module(model)
    if not isinstance(live, PreTrainedModel) or not live.can_generate():
        raise UsageError(f"lm-eval tasks need a model that generates text; {type(live).__name__} does not.")
    return HFLM(pretrained=live, tokenizer=tokenizer, batch_size=batch_size, max_length=max_length)


def _version() -> dict[str, str]:
    from importlib.metadata import version

    return {"lm-eval": f"lm-eval {version('lm_eval')}"}
