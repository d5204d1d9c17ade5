"""Examples with a long tail: intervals reach far enough and p-values are not too small; others lose little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import numpy as np
import pytest

from headcount.metrics import F1, LOSS, PERPLEXITY, Metric, class_counts
from headcount.statistics import Comparison, bootstrap_interval, paired_bootstrap
from headcount.statistics.skewness import hall, hall_inverse, skewness
from headcount.tasks.quality import Quality
from headcount.tasks.translation.bleu import METRIC as BLEU
from headcount.tasks.translation.bleu import bleu_statistics

Plain: TypeAlias = Callable[[], AbstractContextManager[None]]

_TAILS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {  # their mean is 0
    "exponential": lambda random, shape: random.exponential(size=shape) - 1,
    "log-normal": lambda random, shape: np.exp(random.normal(size=shape)) - np.exp(0.5),
    "one in ten": lambda random, shape: np.where(random.random(shape) < 0.1, 9.0, -1.0),
}


def _comparisons(effects_VN: np.ndarray) -> list[Comparison]:
    ones = np.ones(effects_VN.shape[1])
    reference = np.stack([np.zeros_like(ones), ones], axis=1)
    variants = np.stack([effects_VN, np.ones_like(effects_VN)], axis=-1)
    return paired_bootstrap(reference, variants, LOSS.of_sums, resamples=1000)


@pytest.fixture
def without_correction(monkeypatch: pytest.MonkeyPatch) -> Plain:
    """A context in which every tail counts as symmetric."""

    @contextmanager
    def symmetric() -> Iterator[None]:
        with monkeypatch.context() as patch:
            module = sys.modules[skewness.__module__]
            patch.setattr(module, "_skewnesses", lambda drawn, *_: [np.zeros(drawn.shape[1:])])
            yield

    return symmetric


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", _TAILS)
def test_a_long_tail_makes_nothing_significant(name: str, sign: int, without_correction: Plain) -> None:
    """Without the correction, p is below .01 in 2.9, 6.0 and 3.8% of cases, and intervals leave out 0 in up to 10%."""
    effects = sign * _TAILS[name](np.random.default_rng(5), (2000, 50))
    rows = _comparisons(effects)
    assert np.mean([row.p < 0.01 for row in rows]) < 0.02
    assert np.mean([row.p < 0.05 for row in rows]) < 0.07
    assert np.mean([not row.low <= 0 <= row.high for row in rows]) < 0.07
    with without_correction():
        assert np.mean([row.p < 0.01 for row in _comparisons(effects)]) > 0.02  # so the case can fail


@pytest.mark.parametrize("sign", [1, -1])
def test_an_effect_on_the_side_of_the_tail_stays_significant(sign: int, without_correction: Plain) -> None:
    """A head that a few texts need badly: the tail is the effect."""
    effects = sign * np.exp(np.random.default_rng(3).normal(size=(500, 50)))
    corrected = _comparisons(effects)
    with without_correction():
        plain = _comparisons(effects)
    near = "low" if sign > 0 else "high"
    for name in ("p", near):
        assert np.mean([getattr(a, name) == getattr(b, name) for a, b in zip(plain, corrected, strict=True)]) > 0.98


def test_symmetric_examples_lose_little(without_correction: Plain) -> None:
    effects = np.random.default_rng(4).normal(0.4, 1.0, size=(1000, 50))
    corrected = _comparisons(effects)
    with without_correction():
        plain = _comparisons(effects)
    power = [np.mean([row.p < 0.05 for row in rows]) for rows in (plain, corrected)]
    assert power[0] - 0.04 < power[1] <= power[0]
    widths = [np.mean([row.high - row.low for row in rows]) for rows in (plain, corrected)]
    assert widths[0] <= widths[1] < 1.06 * widths[0]


def test_the_correction_only_widens(without_correction: Plain) -> None:
    random = np.random.default_rng(8)
    for examples in (6, 10, 40):
        table = np.stack([random.exponential(size=examples), np.ones(examples)], axis=1)
        for metric in (LOSS, PERPLEXITY):
            wide = bootstrap_interval(table, metric.of_sums)
            with without_correction():
                plain = bootstrap_interval(table, metric.of_sums)
            assert wide.low <= plain.low <= plain.value <= plain.high <= wide.high


def _misses(metric: Metric, truth: float, draw: Callable[[np.random.Generator], np.ndarray]) -> float:
    random = np.random.default_rng(2)
    intervals = [Quality.of(metric, draw(random)).interval() for _ in range(150)]
    return float(np.mean([not interval.low <= truth <= interval.high for interval in intervals]))


def test_a_few_bad_translations_among_mistakes(without_correction: Plain) -> None:
    """Nineteen of 300 translations have a mistake, and four of them no right word."""
    sentence = "a b c d e f g h i j k l m n o p"
    kinds = bleu_statistics([sentence, sentence.replace("p", "x"), "x " * 15 + "x"], [sentence] * 3)[0]
    chance = np.array([281, 15, 4]) / 300
    truth = float(BLEU.of_sums(chance @ kinds))

    def draw(random: np.random.Generator) -> np.ndarray:
        return kinds[random.choice(3, 300, p=chance)]

    corrected = _misses(BLEU, truth, draw)
    with without_correction():
        assert corrected < 0.08 < _misses(BLEU, truth, draw)


def test_a_rare_class(without_correction: Plain) -> None:
    """A tenth of 60 labels is 1, and a tenth of all answers is wrong."""
    cells = np.array([0.81, 0.09, 0.01, 0.09])
    truth = float(F1.of_sums(cells @ class_counts(np.arange(4) % 2, np.arange(4) // 2, 2)))

    def draw(random: np.random.Generator) -> np.ndarray:
        labels, answers = np.divmod(random.choice(4, 60, p=cells), 2)
        return class_counts(answers, labels, 2)

    corrected = _misses(F1, truth, draw)
    with without_correction():
        assert corrected < min(0.07, _misses(F1, truth, draw))


def test_hall_and_its_inverse() -> None:
    for size in (-0.4, -1e-9, 0.0, 0.2):
        distances = np.linspace(-2.2, 2.2, 9)
        np.testing.assert_allclose(hall_inverse(hall(distances, size), size), distances, atol=1e-6)
        assert (np.diff(hall(np.linspace(-9, 9, 50), size)) > 0).all()
    assert hall(-2.0, 0.3) == pytest.approx(-2.0 + 0.3 * 4 / 3 - 0.09 * 8 / 27 + 0.05)


def test_skewness_of_the_mean_is_that_of_examples_over_the_root_of_their_number() -> None:
    random = np.random.default_rng(9)
    examples = random.exponential(size=60)
    drawn = random.choice(examples, size=(200_000, 60)).mean(1)
    away = examples - examples.mean()
    unbiased = (away**3).mean() / (away**2).mean() ** 1.5 * np.sqrt(60 * 59) / 58
    assert skewness(drawn, 60) == pytest.approx(unbiased / np.sqrt(60), abs=0.02)
    assert skewness(np.full((9, 2), 3.0), 60).tolist() == [0.0, 0.0]
    with np.errstate(all="raise"):
        assert skewness(np.array([1.0, np.inf, 2.0]), 60) == 0.0


def test_texts_of_unequal_length_whose_loss_depends_on_it() -> None:
    """Of 100 texts whose loss falls with their length, 14% of the intervals left out that of all texts."""
    random = np.random.default_rng(0)

    def texts(count: int) -> np.ndarray:
        lengths = np.ceil(20 * random.lognormal(size=count))
        losses = 3 - 0.6 * np.log(lengths / 20) + 0.4 * random.normal(size=count)
        return np.stack([losses * lengths, lengths], axis=1)

    truth = LOSS.of(texts(1_000_000))
    intervals = [bootstrap_interval(texts(100), LOSS.of_sums) for _ in range(300)]
    assert np.mean([not row.low <= truth <= row.high for row in intervals]) < 0.09
