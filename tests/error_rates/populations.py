"""Populations: examples as users have them, drawn at random, so that the true value of a number is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headcount.metrics import class_counts
from headcount.tasks.translation.bleu import bleu_statistics

Random = np.random.Generator
Draw = Callable[[Random, int], np.ndarray]  # -> [examples, columns], as a metric sums them

ONE_IN_TEN = "one in ten is -9"
_SENTENCE = "a b c d e f g h i j k l m n o p"

EFFECTS: dict[str, Callable[[Random, tuple[int, ...]], np.ndarray]] = {  # of mean 0
    "normal": lambda random, shape: random.normal(size=shape),
    "exponential": lambda random, shape: random.exponential(size=shape) - 1,
    "log-normal": lambda random, shape: random.lognormal(size=shape) - np.exp(0.5),
    ONE_IN_TEN: lambda random, shape: np.where(random.random(shape) < 0.1, -9.0, 1.0),
}

WORTH: dict[str, tuple[Draw, float]] = {  # of heads, with the noise of measuring it
    "exponential": (lambda random, size: random.exponential(size=size), 0.5),
    "15% of heads matter": (lambda random, size: random.exponential(size=size) * (random.random(size) < 0.15), 0.1),
    "log-normal": (lambda random, size: random.lognormal(size=size), 0.54),
}

LAYERS = {12: 4, 16: 8, 36: 6, 72: 12, 144: 12}  # heads of a model -> heads of each of its layers


def layered(random: Random, layers: np.ndarray, r: float, share: float) -> np.ndarray:
    """[2, heads]: two scores with correlation r between layers and within them; a share of the variance is between."""
    both = [random.multivariate_normal([0, 0], [[1, r], [r, 1]], size).T for size in (layers.max() + 1, len(layers))]
    return np.asarray(share**0.5 * both[0][:, layers] + (1 - share) ** 0.5 * both[1])


def roles_and_importance(random: Random, layers: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Which quarter of the heads have a role, and importance: unrelated, but a share of both is the layer's."""
    tendency, importance = layered(random, layers, 0.0, share)
    return tendency >= np.sort(tendency)[-max(2, len(layers) // 4)], importance


def losses(effects: str) -> Draw:
    """Texts of one length: loss 10 on average, and 1."""
    return lambda random, size: np.stack([10 + EFFECTS[effects](random, (size,)), np.ones(size)], axis=1)


def texts(spread: float, slope: float) -> Draw:
    """Texts of log-normal length, whose loss per token changes with the logarithm of it."""

    def draw(random: Random, size: int) -> np.ndarray:
        lengths = np.ceil(20 * random.lognormal(sigma=spread, size=size))
        losses = 3 + slope * np.log(lengths / 20) + 0.4 * random.normal(size=size)
        return np.stack([losses * lengths, lengths], axis=1)

    return draw


def answers(right: float) -> Draw:
    return lambda random, size: np.stack([random.random(size) < right, np.ones(size)], axis=1).astype(float)


def classes(shares: tuple[float, ...], right: float) -> Draw:
    """Labels with these shares; wrong answers are any other class."""

    def draw(random: Random, size: int) -> np.ndarray:
        labels = random.choice(len(shares), size, p=shares)
        others = (labels + random.integers(1, len(shares), size)) % len(shares)
        return class_counts(np.where(random.random(size) < right, labels, others), labels, len(shares))

    return draw


def translations(one_word: float, no_word: float) -> Draw:
    """Translations of which these shares have a wrong word, or no right one."""
    wrong = [_SENTENCE.replace("h", "x"), "x " * 15 + "x"]
    kinds = bleu_statistics([_SENTENCE, *wrong], [_SENTENCE] * 3)[0]
    chance = [1 - one_word - no_word, one_word, no_word]
    return lambda random, size: kinds[random.choice(3, size, p=chance)]
