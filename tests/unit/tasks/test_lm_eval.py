"""Tasks of the lm-evaluation-harness: single examples, masked and pruned models, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from headcount.errors import UnknownName, UsageError
from headcount.metrics import Metric
from headcount.statistics import Comparison, share_interval
from headcount.tasks.harness import task_names
from headcount.tasks.lm_eval import Measure, mean_over_tasks
from headcount.tasks.quality import Quality
from tokens import sentences, word_tokenizer

CHOICES = ("w5", "w9 w11", "w17")


def write_tasks(folder: Path) -> dict[str, str]:
    """A task of multiple choice and one of plain texts, each a file with its data beside it."""
    texts = sentences(9)
    rows = [{"question": text, "choices": CHOICES, "answer": index % 3} for index, text in enumerate(texts)]
    (folder / "docs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    common = {
        "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / "docs.jsonl")}},
        "test_split": "test",
    }  # fmt: skip
    choice = {
        "task": "choice_of_words", "output_type": "multiple_choice", "doc_to_text": "{{question}}",
        "doc_to_target": "answer", "doc_to_choice": "{{choices}}",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }  # fmt: skip
    plain = {
        "task": "plain_words", "output_type": "loglikelihood_rolling", "doc_to_text": "",
        "doc_to_target": "{{question}}", "metric_list": [{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
    }  # fmt: skip
    for task in (choice, plain):
        (folder / f"{task['task']}.yaml").write_text(json.dumps({**task, **common}))  # JSON is YAML
    return {"choice": str(folder / "choice_of_words.yaml"), "plain": str(folder / "plain_words.yaml")}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_tasks(tmp_path_factory.mktemp("harness"))


@pytest.fixture(scope="module")
def model() -> Any:
    return zoo.build("llama")


def log_likelihoods(model: nn.Module, text: str) -> list[float]:
    """Of the choices after a text, summed over their tokens, one run each."""
    tokenizer, values = word_tokenizer(), []
    for choice in CHOICES:
        context = tokenizer(text).input_ids
        ids = tokenizer(f"{text} {choice}").input_ids
        with torch.no_grad():
            logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), -1)
        values.append(sum(float(logs[place - 1, ids[place]]) for place in range(len(context), len(ids))))
    return values


def test_examples_are_right_where_the_likeliest_choice_is(model: Any, files: dict[str, str]) -> None:
    quality = hc.task(f"lm-eval:{files['choice']}", tokenizer=word_tokenizer()).quality(model)
    right = [float(np.argmax(log_likelihoods(model, text)) == index % 3) for index, text in enumerate(sentences(9))]
    assert quality.name == "acc"
    assert quality.statistics[:, 0].tolist() == right
    assert quality.value == pytest.approx(np.mean(right))


def test_right_answers_alone_are_no_certainty(model: Any, files: dict[str, str]) -> None:
    metric = hc.task(f"lm-eval:{files['choice']}", tokenizer=word_tokenizer()).metric
    interval = Quality.of(metric, np.ones((30, 2))).interval()
    assert interval == pytest.approx(share_interval(30, 30))


def test_a_pruned_model_answers_as_the_masked_one_does(model: Any, files: dict[str, str]) -> None:
    task = hc.task(f"lm-eval:{files['plain']}", tokenizer=word_tokenizer(), limit=4)
    heads = hc.locate(model).heads
    mask = hc.locate(model).mask(off=[heads[0], heads[-1]])
    whole = task.quality(model)
    with hc.masked(model, mask):
        masked = task.quality(model)
    pruned = task.quality(hc.remove(model, mask))
    assert whole.name == "word_perplexity"
    assert not whole.metric.higher_is_better
    assert masked.statistics.shape == (4, 2)
    np.testing.assert_allclose(pruned.statistics, masked.statistics, rtol=1e-5)
    assert not np.allclose(whole.statistics, masked.statistics, rtol=1e-5)


def test_several_tasks_are_averaged_and_resampled_together(model: Any, files: dict[str, str], tmp_path: Path) -> None:
    other = json.loads(Path(files["choice"]).read_text()) | {"task": "other_words", "doc_to_target": 0}
    (tmp_path / "other.yaml").write_text(json.dumps(other))
    names = f"lm-eval:{files['choice']},{tmp_path / 'other.yaml'}"
    evaluation = hc.task(names, tokenizer=word_tokenizer(), metric="acc_norm").evaluation(model)
    measures = dict(evaluation.measures)
    assert list(measures) == ["mean acc_norm", "choice_of_words acc_norm", "other_words acc_norm"]
    assert measures["mean acc_norm"] == pytest.approx(
        (measures["choice_of_words acc_norm"] + measures["other_words acc_norm"]) / 2
    )
    assert evaluation.quality.statistics.shape == (18, 4)
    assert "lm-eval" in evaluation.settings


@pytest.mark.parametrize("task", ["choice", "plain"])
def test_the_harness_shows_no_bars(task: str, model: Any, files: dict[str, str], capfd: Any) -> None:
    """It shows one for each batch of plain texts, even if it is asked for none."""
    measure = hc.task(f"lm-eval:{files[task]}", tokenizer=word_tokenizer(), limit=4)
    capfd.readouterr()  # of reading the data
    measure.quality(model)
    assert capfd.readouterr().err == ""


def test_a_resample_without_an_example_of_a_task_is_the_mean_of_the_others() -> None:
    """A task that is not in a resample counted as 0: intervals of many tasks were shifted down, below their value."""
    metric = mean_over_tasks([Measure(f"task {number}", "acc", "mean", True) for number in range(57)])
    tables = [table for number in range(57) for table in np.eye(57)[[number, number]]]
    right = np.random.default_rng(0).random(len(tables)) < 0.8
    statistics = np.stack([np.stack([row * one, row], 1).ravel() for row, one in zip(tables, right, strict=True)])
    interval = Quality.of(metric, statistics).interval()
    assert interval.value == pytest.approx(right.mean())
    assert interval.low < interval.value < interval.high
    assert metric.of(statistics[:4]) == pytest.approx(right[:4].mean())


ACC = Measure("a", "acc", "mean", True)
PERPLEXITY = Measure("p", "perplexity", "perplexity", False)
WORDS = Measure("w", "word_perplexity", "weighted_perplexity", False)
BYTES = Measure("b", "byte_perplexity", "weighted_perplexity", False)
BITS = Measure("n", "bits_per_byte", "bits_per_byte", False)


@pytest.mark.parametrize(
    ("measures", "lowest", "highest"),
    [
        ([ACC], 0, 1),
        ([ACC, Measure("e", "exact_match", "mean", True)], 0, 1),
        ([ACC, Measure("s", "score", "mean", True)], -inf, inf),
        ([Measure("s", "acc", "perplexity", True)], -inf, inf),  # a metric of that name alone, not the harness's
        ([PERPLEXITY], 1, inf),
        ([WORDS, BYTES, PERPLEXITY], 1, inf),
        ([BITS], 0, inf),
        ([BITS, WORDS], 0, inf),
    ],
)
def test_the_interval_is_within_what_the_metrics_can_be(measures: list[Measure], lowest: float, highest: float) -> None:
    """A perplexity of 1667 had the interval -45676 to 92822, and a mean of two accuracies reached 1.027."""
    metric = mean_over_tasks(measures)
    assert (metric.lowest, metric.highest) == (lowest, highest)
    beyond, tasks = 0, len(measures)
    for seed in range(30):
        random = np.random.default_rng(seed)
        statistics, other = np.zeros((2, 6 * tasks, 2 * tasks))
        for index, measure in enumerate(measures):
            rows, columns = slice(6 * index, 6 * index + 6), slice(2 * index, 2 * index + 2)
            for table in (statistics, other):
                rare = random.random(6) < 0.15
                values = rare != (seed % 2) if measure.higher_is_better else random.lognormal(-1, 1.5, 6)
                table[rows, columns] = np.stack([values, np.ones(6)], 1)
        quality = Quality.of(metric, statistics)
        interval, plain = quality.interval(), Quality.of(unbounded(metric), statistics).interval()
        assert lowest <= interval.low <= interval.value <= interval.high <= highest
        assert interval == pytest.approx((plain.value, max(plain.low, lowest), min(plain.high, highest)))
        change, free = (Quality.of(m, other).against(Quality.of(m, statistics)) for m in (metric, unbounded(metric)))
        assert change.low == max(free.low, lowest - highest)
        assert change.high == min(free.high, highest - lowest)
        beyond += plain.low < lowest or plain.high > highest
    assert (beyond > 0) == ((lowest, highest) != (-inf, inf))  # what is tested occurs


def test_a_change_of_shares_is_at_most_all_of_them() -> None:
    metric = mean_over_tasks([ACC, ACC])
    row = Comparison(difference=0.9, low=0.7, high=1.1, p=0.01)
    assert metric.possible_change(row).high == 1
    assert metric.possible_change(row._replace(difference=-0.9, low=-1.1, high=-0.7)).low == -1


def unbounded(metric: Metric) -> Metric:
    return replace(metric, lowest=-inf, highest=inf)


def test_what_is_refused(model: Any, files: dict[str, str], bert: nn.Module) -> None:
    tokenizer = word_tokenizer()
    choice = hc.task(f"lm-eval:{files['choice']}", tokenizer=tokenizer)
    with pytest.raises(UsageError, match=r"no metric 'bleu' .*; it has acc, acc_norm"):
        hc.task(f"lm-eval:{files['choice']}", tokenizer=tokenizer, metric="bleu")
    with pytest.raises(UsageError, match="measure them separately"):
        hc.task(f"lm-eval:{files['choice']},{files['plain']}", tokenizer=tokenizer)
    with pytest.raises(UsageError, match="a model that generates text; BertForSequenceClassification does not"):
        choice.quality(bert)
    with pytest.raises(UsageError, match="has no batches: the harness runs the model itself"):
        hc.score("gradient", model, choice)
    for text in ("lm-eval:", "lm-eval:a,a"):
        with pytest.raises(UsageError, match="each task once"):
            task_names(text)


def test_a_task_that_there_is_not_is_refused(files: dict[str, str], tmp_path: Path, monkeypatch: Any) -> None:
    import lm_eval.tasks

    manager = lm_eval.tasks.TaskManager(include_path=str(Path(files["choice"]).parent), include_defaults=False)
    monkeypatch.setattr(lm_eval.tasks, "TaskManager", lambda **_: manager)  # thousands of files are not read
    with pytest.raises(UnknownName, match="Did you mean 'choice_of_words'"):
        hc.task("lm-eval:choice_of_word", tokenizer=word_tokenizer())


def test_it_can_be_the_quality_of_pruning(model: Any, files: dict[str, str]) -> None:
    texts = hc.task("language-modelling", texts=sentences(4), tokenizer=word_tokenizer())
    measure = hc.task(f"lm-eval:{files['choice']}", tokenizer=word_tokenizer(), limit=5)
    pruned = hc.prune(model, texts, choose="magnitude", keep="50%", measure_on=measure, step=1.0)
    parts = pruned.record.parts
    assert parts.metric == "acc"
    assert len(parts.statistics["after"]) == 5
    assert parts.quality.after.value == pytest.approx(measure.quality(pruned.model).value)
