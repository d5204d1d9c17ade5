"""Metrics: one number computed from the statistics of all examples. Pure functions of numpy arrays.

Every metric is a function of sums over examples, so any resampling of examples is a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeVar

import numpy as np

from headcount.statistics import (
    Comparison,
    Interval,
    Runs,
    counted,
    mcnemar,
    paired_bootstrap,
    paired_shares,
    share_interval,
)

Change = TypeVar("Change", Comparison, Runs)

FEW = 3  # mistakes or changed answers: more than 2.5% of resamples have none of three
_ONE_SIDED = 5  # changed examples: all have the same sign in more than 5% of cases, if both signs are equally likely


@dataclass(frozen=True)
class Metric:
    """How sums of per-example statistics become a number."""

    name: str
    of_sums: Callable[[np.ndarray], np.ndarray]  # [..., columns] -> [...]
    higher_is_better: bool = True
    distance: bool = False  # from the whole model: any change increases it, so "no change" cannot be tested
    point: float = 1.0  # what is called one point; of a metric between 0 and 1 it is a hundredth
    bound: float | None = None  # of one example's value, if the metric is the mean of column 0
    # [C] -> [answers, C] for each label: sums if all examples had one label and one answer; None if they are no answers
    answers: Callable[[np.ndarray], Iterable[np.ndarray]] | None = None
    right: Callable[[np.ndarray], np.ndarray] | None = None  # [N, C] -> [N]: examples without a mistake
    reach: Callable[[np.ndarray], Interval] | None = None  # [C] -> an interval that no interval is narrower than
    biased: bool = False  # smaller on fewer examples, as the mean F1 of many classes is
    lowest: float = -inf  # that it can be, on any examples
    highest: float = inf

    def of(self, statistics: np.ndarray) -> float:
        """The metric of all examples: statistics [examples, columns]."""
        return float(self.of_sums(statistics.sum(0, dtype=np.float64)))

    def mistakes(self, statistics: np.ndarray) -> int | None:
        """Number of examples with a mistake; None if the metric does not know."""
        return None if self.right is None else int((~self.right(statistics)).sum())

    def unseen(self, sums: np.ndarray, share: float) -> np.ndarray:
        """[labels, answers]: the metric if this share of examples had one label and answer; empty without answers."""
        if self.answers is None:
            return np.empty((0, 0))
        return np.stack([self.of_sums((1 - share) * sums + share * all_AC) for all_AC in self.answers(sums)])

    def gain(self, difference: float) -> float:
        """A difference of the metric with its sign changed if necessary, so that positive is better."""
        return difference if self.higher_is_better else -difference

    def compare(
        self, reference: np.ndarray, variants: np.ndarray, *, resamples: int, seed: int = 0
    ) -> list[Comparison]:
        """Each of `variants` [V, N, C] against `reference` [N, C], paired by example.

        By the centred bootstrap; accuracy by McNemar's exact test, with an interval that is no narrower than that of
        `paired_shares`: where few answers change, resamples vary too little.
        """
        rows = paired_bootstrap(reference, variants, self.of_sums, resamples=resamples, seed=seed)
        if self is not ACCURACY:
            widened = [self._by_changes(row, reference, variant) for row, variant in zip(rows, variants, strict=True)]
            return [self.possible_change(row) for row in widened]
        right_N = reference[:, 0]
        return [_by_answers(row, right_N, variant[:, 0]) for row, variant in zip(rows, variants, strict=True)]

    def possible(self, interval: Interval) -> Interval:
        """An interval without what the metric cannot be: few examples with a long tail may reach beyond."""
        value, low, high = interval
        return Interval(
            value, float(np.maximum(low, min(self.lowest, value))), float(np.minimum(high, max(self.highest, value)))
        )

    def possible_change(self, row: Change) -> Change:
        """A difference with an interval of what two values of the metric can differ by."""
        most = self.highest - self.lowest
        return row._replace(low=float(np.maximum(row.low, -most)), high=float(np.minimum(row.high, most)))

    def _by_changes(self, row: Comparison, reference: np.ndarray, variant: np.ndarray) -> Comparison:
        """With p of at least 2^(1 - changed examples), and an interval that allows for changes that are not seen.

        A few changes may all have the same sign by chance: both sides of the interval are as long as the longer one.
        With at most three, it has what so many examples may miss: further changed answers, wholly right or wrong.
        """
        pair = counted(np.stack([reference, variant], axis=1))
        changed = int((pair[:, 0] != pair[:, 1]).any(1).sum())
        row = row._replace(p=max(row.p, 2.0 ** min(1 - changed, 0)))
        if changed > _ONE_SIDED or np.isnan(row.low):
            return row
        reach = max(row.high - row.difference, row.difference - row.low)
        ends = [row.difference - reach, row.difference + reach]
        if self.answers is not None and changed <= FEW:
            further = share_interval(changed, len(pair)).high - changed / len(pair)
            before, after = (self.unseen(sums, further) for sums in pair.sum(0))
            ends.extend(after.min(1) - before.max(1))  # of the same label
            ends.extend(after.max(1) - before.min(1))
        return row._replace(low=float(min(ends)), high=float(max(ends)))


def _by_answers(row: Comparison, first_right: np.ndarray, second_right: np.ndarray) -> Comparison:
    shares = paired_shares(first_right, second_right)
    low, high = float(np.fmin(row.low, shares.low)), float(np.fmax(row.high, shares.high))
    return row._replace(low=low, high=high, p=mcnemar(first_right, second_right))


def _ratio(sums: np.ndarray) -> np.ndarray:
    """First column over second."""
    return sums[..., 0] / np.maximum(sums[..., 1], 1e-300)


def wrong_or_right(sums: np.ndarray) -> np.ndarray:
    """Sums if all answers were wrong, and if all were right, where the metric is the share of right ones."""
    return np.array([[[0.0, 1.0], [1.0, 1.0]]]) * sums[1]


def all_right(statistics: np.ndarray) -> np.ndarray:
    """[N]: examples whose first column is as large as the second."""
    return np.asarray(statistics[:, 0] == statistics[:, 1])


ACCURACY = Metric(
    "accuracy", _ratio, point=0.01, bound=1.0, answers=wrong_or_right, right=all_right, lowest=0.0, highest=1.0
)  # columns: right, 1
TOKEN_ACCURACY = Metric(  # columns: right predictions, predictions
    "token accuracy", _ratio, point=0.01, answers=wrong_or_right, right=all_right, lowest=0.0, highest=1.0
)
COSINE_DISTANCE = Metric(  # columns: 1 - cosine, 1
    "cosine distance", _ratio, higher_is_better=False, distance=True, point=0.01, lowest=0.0, highest=2.0
)
LOSS = Metric("loss", _ratio, higher_is_better=False)  # columns: negative log-likelihood, predictions
PERPLEXITY = Metric(  # the same columns
    "perplexity", lambda sums: np.exp(_ratio(sums)), higher_is_better=False, lowest=1.0
)


def class_counts(answers: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """[N, 3 * classes]: by class, whether an example is right, has it as label, and has it as answer.

    All that F1 and Matthews correlation need. A table of labels and answers would have the square of the classes.
    """
    kinds_N3K = np.zeros((len(labels), 3, classes), dtype=np.int64)
    rows = np.arange(len(labels))
    kinds_N3K[rows, 0, labels] = labels == answers
    kinds_N3K[rows, 1, labels] = kinds_N3K[rows, 2, answers] = 1
    return kinds_N3K.reshape(len(labels), -1)


def _by_class(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[..., K] each: right ones, labels and answers of each class."""
    right, labels, answers = np.split(np.asarray(sums, dtype=np.float64), 3, axis=-1)
    return right, labels, answers


def _f1(sums: np.ndarray) -> np.ndarray:
    """F1 of class 1 for two classes, else the mean over the classes that occur as a label or an answer."""
    right, labels, answers = _by_class(sums)
    total = labels + answers
    each = 2 * right / np.maximum(total, 1e-300)
    return each[..., 1] if each.shape[-1] == 2 else each.sum(-1) / np.maximum((total > 0).sum(-1), 1)


def _f1_reach(sums: np.ndarray) -> Interval:
    """F1 with the exact interval of each class, added as squares over classes (Zou and Donner 2008).

    F1 of a class is 2 q / (1 + q), where q is the share of right ones among the examples that have the class as label
    or answer. Resamples of one example, or none, are all alike: of 100 examples with a class of 2%, 34% of the
    bootstrap's intervals of the mean over classes left out the truth. The mean is over the classes that occur.
    """
    right_K, labels_K, answers_K = _by_class(sums)
    either_K = labels_K + answers_K - right_K
    pairs = [(round(right), round(either)) for right, either in zip(right_K, either_K, strict=True)]
    pairs = pairs[1:] if len(pairs) == 2 else pairs
    shares_S3 = np.array([share_interval(*pair) for pair in pairs if pair[1]])
    if not len(shares_S3):
        return Interval(0.0, 0.0, 1.0)
    f1_S3 = 2 * shares_S3 / (1 + shares_S3)
    below, above = (np.linalg.norm(f1_S3[:, 0] - f1_S3[:, end]) / len(f1_S3) for end in (1, 2))
    value = f1_S3[:, 0].mean()
    return Interval(float(value), float(value - below), float(value + above))


def _matthews(sums: np.ndarray) -> np.ndarray:
    """Correlation of answers and labels (Gorodkin 2004 for many classes); 0 if one of them is constant."""
    right, labels, answers = _by_class(sums)
    count = labels.sum(-1)
    covariance = right.sum(-1) * count - (labels * answers).sum(-1)
    spread = (count**2 - (answers**2).sum(-1)) * (count**2 - (labels**2).sum(-1))
    return np.where(spread > 0, covariance / np.sqrt(np.maximum(spread, 1e-300)), 0.0)


def _one_answer(sums: np.ndarray) -> Iterator[np.ndarray]:
    """For each label, sums [answers, C] if all examples had it and one answer."""
    classes = len(sums) // 3
    count, answers = sums[classes : 2 * classes].sum(), np.arange(classes)
    return (count * class_counts(answers, np.full_like(answers, label), classes) for label in range(classes))


def _is_right(statistics: np.ndarray) -> np.ndarray:
    return np.asarray(_by_class(statistics)[0].any(-1))


F1 = Metric(
    "F1", _f1, point=0.01, answers=_one_answer, right=_is_right, reach=_f1_reach, biased=True, lowest=0.0, highest=1.0
)
MATTHEWS = Metric("Matthews", _matthews, point=0.01, answers=_one_answer, right=_is_right, lowest=-1.0, highest=1.0)
