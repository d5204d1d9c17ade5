"""Metrics compare two models by the test that fits them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import binomtest

from headcount.metrics import ACCURACY, COSINE_DISTANCE, F1, LOSS, MATTHEWS, TOKEN_ACCURACY, Metric, class_counts
from headcount.statistics import paired_bootstrap
from headcount.tasks.quality import Quality
from headcount.tasks.translation.bleu import METRIC as BLEU
from headcount.tasks.translation.bleu import bleu_statistics


def _statistics(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.ones_like(values)], axis=-1)


def test_a_point_of_a_metric_between_0_and_1_is_a_hundredth() -> None:
    assert {metric.point for metric in (ACCURACY, TOKEN_ACCURACY, F1, MATTHEWS, COSINE_DISTANCE)} == {0.01}
    assert {metric.point for metric in (BLEU, LOSS)} == {1.0}


def test_accuracy_is_compared_by_the_answers_that_change() -> None:
    """Two of 100 answers are lost: resamples alone would say that none is, at worst, in one of eight cases."""
    before, after = np.ones(100), np.ones(100)
    after[:2] = 0
    (change,) = ACCURACY.compare(_statistics(before), _statistics(after)[None], resamples=1000)
    assert change.difference == pytest.approx(-0.02)
    assert change.p == pytest.approx(binomtest(2, 2).pvalue)
    exact = binomtest(2, 100).proportion_ci(method="exact")
    assert -exact.high - 0.01 < change.low <= -exact.high
    assert change.high <= -exact.low + 0.03


def test_a_loss_is_compared_by_the_bootstrap_and_may_have_a_long_tail() -> None:
    before, after = np.random.default_rng(0).normal(size=(2, 50))
    statistics = _statistics(before), _statistics(after)[None]
    expected = paired_bootstrap(*statistics, LOSS.of_sums, resamples=200)
    assert LOSS.compare(*statistics, resamples=200) == expected


@pytest.mark.parametrize("metric", [F1, MATTHEWS])
def test_answers_that_do_not_change_may_change_elsewhere(metric: Metric) -> None:
    """Of models that lose one answer in 20, 21% lose none of 30, and had 0 (0 to 0)."""
    labels = np.arange(30) % 2
    right = class_counts(labels, labels, 2)
    (same,) = metric.compare(right, right[None], resamples=200)
    every = np.repeat([0, 1, 2, 3], [475, 25, 25, 475])
    lost = metric.of(class_counts(every % 2, every // 2, 2)) - 1
    assert same.difference == 0
    assert same.low < lost < 0 < -lost < same.high
    fewer = class_counts(labels ^ (np.arange(30) < 1), labels, 2)
    (one,) = metric.compare(right, fewer[None], resamples=200)
    assert one.low < same.low
    many = class_counts(labels ^ (np.arange(30) < 8), labels, 2)
    (eight,) = metric.compare(right, many[None], resamples=200)
    assert eight[:3] == paired_bootstrap(right, many[None], metric.of_sums, resamples=200)[0][:3]


@pytest.mark.parametrize("changed", [1, 4, 5, 6])
def test_a_few_changes_of_the_same_sign_may_be_chance(changed: int) -> None:
    """Four lost words in 1000 sentences had an interval below 0, as one of eight equally good models has."""
    before, after = _translations(1000, 0), _translations(1000, changed)
    (change,) = BLEU.compare(before, after[None], resamples=1000)
    assert change.p >= 2 ** (1 - changed)
    assert (change.low < 0 < change.high) == (changed < 6)


@pytest.mark.parametrize("mistakes", [0, 1, 4, 10, 100])
def test_the_interval_of_an_accuracy_is_exact(mistakes: int) -> None:
    right = (np.arange(200) >= mistakes).astype(float)
    interval = Quality.of(ACCURACY, _statistics(right)).interval()
    exact = binomtest(mistakes, 200).proportion_ci(method="exact")
    assert interval == pytest.approx((1 - mistakes / 200, 1 - exact.high, 1 - exact.low))


def _translations(count: int, mistakes: int) -> np.ndarray:
    sentences = ["a b c d e f g h"] * count
    return bleu_statistics(["a b c x e f g h"] * mistakes + sentences[mistakes:], sentences)[0]


def test_the_mean_f1_of_classes_knows_how_few_examples_a_class_has() -> None:
    """A class of 2% has no or one example in half of the samples of 100, and its F1 is 0 in all of their resamples."""
    prior, answers_of = [0.49, 0.49, 0.02], np.array([[0.85, 0.1, 0.05], [0.1, 0.85, 0.05], [0.2, 0.2, 0.6]])
    cells = (np.array(prior)[:, None] * answers_of).ravel()
    truth = float(F1.of_sums(cells @ class_counts(np.arange(9) % 3, np.arange(9) // 3, 3)))
    random, outside = np.random.default_rng(0), 0
    for _ in range(60):
        labels = random.choice(3, size=100, p=prior)
        answers = np.array([random.choice(3, p=answers_of[label]) for label in labels])
        interval = Quality.of(F1, class_counts(answers, labels, 3)).interval()
        outside += not interval.low <= truth <= interval.high
    assert outside <= 6  # 18 without the exact intervals of each class


def test_classes_that_never_occur_change_nothing() -> None:
    labels = np.arange(90) % 3
    answers = np.where(np.arange(90) % 9 == 0, (labels + 1) % 3, labels)
    three, many = (Quality.of(F1, class_counts(answers, labels, classes)).interval() for classes in (3, 28))
    assert many == pytest.approx(three)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("metric", [F1, MATTHEWS])
def test_a_share_of_one_label_and_answer_is_that_of_so_many_more_examples(metric: Metric, classes: int) -> None:
    random = np.random.default_rng(classes)
    labels = random.integers(0, classes, 30)
    answers = np.where(random.random(30) < 0.7, labels, random.integers(0, classes, 30))
    found = metric.unseen(class_counts(answers, labels, classes).sum(0), 0.25)
    assert found.shape == (classes, classes)
    for label, answer in np.ndindex(classes, classes):  # 10 of 40 examples
        more = class_counts(np.append(answers, [answer] * 10), np.append(labels, [label] * 10), classes)
        assert found[label, answer] == pytest.approx(metric.of(more), rel=1e-12)


def test_many_classes_need_little_memory() -> None:
    """Tables of labels and answers of 151 classes, and of all their pairs, took 8 GB."""
    labels = np.arange(300) % 151
    answers = np.where(np.arange(300) < 2, labels + 1, labels)
    tracemalloc.start()
    F1.compare(class_counts(labels, labels, 151), class_counts(answers, labels, 151)[None], resamples=1000)
    Quality.of(MATTHEWS, class_counts(answers, labels, 151)).interval()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_translations_without_a_mistake_may_have_some_elsewhere() -> None:
    """Of models with a mistake in 200 sentences 22% have none in 300, and had 100 (100 to 100)."""
    truth = BLEU.of(_translations(200, 1))
    for mistakes in range(4):
        interval = Quality.of(BLEU, _translations(300, mistakes)).interval()
        assert interval.low < truth < interval.value + 0.5
        assert interval.high == pytest.approx(100)
    many = Quality.of(BLEU, _translations(300, 30)).interval()
    assert many.high < 100


def test_translations_that_do_not_change_may_change_elsewhere() -> None:
    """Of models that lose a word in 200 sentences 20% lose none in 300, and had 0 (0 to 0)."""
    lost = BLEU.of(_translations(200, 1)) - 100
    right = _translations(300, 0)
    (same,) = BLEU.compare(right, right[None], resamples=200)
    assert same.low < lost < same.difference == 0 < -lost < same.high
