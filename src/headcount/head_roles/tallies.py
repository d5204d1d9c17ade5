"""Tallies: hits and trials of all roles, summed over sentences, plain and resampled, in memory per head only.

Shapes: B batch, H heads of a site, L labels of all roles, R resamples, O offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headcount.head_roles.evidence import MIN_TRIALS, HalvedEvidence
from headcount.head_roles.reading import Reading
from headcount.head_roles.role import FURTHEST, Role
from headcount.statistics import Interval, RatioSums, percentile_intervals, share_interval


@dataclass(frozen=True)
class Column:
    """One label of one role."""

    role: str
    label: str
    signed: bool = False  # values are between -1 and 1, not 0 and 1

    @property
    def least(self) -> float:
        return -1.0 if self.signed else 0.0


def binomial_p(
    sums: RatioSums, label: int, threshold: float, *, least: float = 0.0, offset: float | None = None
) -> np.ndarray:
    """[H]: one-sided binomial p-value that the share of hits is below the threshold, over sentences.

    Trials of a sentence may depend on each other, so n is not their number but (sum of trials)^2 / (sum of squared
    trials): the number of sentences if all have equally many trials. The test is then exact, and conservative if
    trials depend less on each other; a variance estimated from few misses would not be.

    least: lowest value of a sentence. offset: share of the fixed offset that the threshold is a multiple of, if it is
    one. It was measured on the same sentences and varies as the head does, so that n counts for less: with the
    threshold taken as known, 15% of heads at it had a p below .05.
    """
    from scipy.special import betainc

    share_H, count = sums.value[:, label], float(sums.sentences[0, label])
    share_H, threshold = (share_H - least) / (1 - least), (threshold - least) / (1 - least)
    if threshold >= 1:
        return np.ones_like(share_H)
    if offset is not None and 0 < offset < 1:
        of_threshold = (threshold / offset) ** 2 * offset * (1 - offset)
        count /= 1 + of_threshold / (threshold * (1 - threshold))
    hits_H = np.clip(share_H * count, 1e-12, count)
    return betainc(hits_H, count - hits_H + 1, max(threshold, 0.0))  # P(X >= hits) for real numbers


def without_misses(
    value_HL: np.ndarray, low_HL: np.ndarray, high_HL: np.ndarray, sentences_L: np.ndarray, least_L: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of intervals of shares, from their least value to 1.

    If all trials were hits, or none, the far end is the exact one over sentences.

    Resamples of hits alone are all alike: a head that hits 97% of 30 sentences would have 1 (1 to 1) in 40% of cases.
    """
    with np.errstate(divide="ignore"):
        exact_L = 0.025 ** (1 / sentences_L)
    alike_HL = low_HL == high_HL
    far_L = (1 - least_L) * (1 - exact_L)  # from a value to the far end of its interval
    low_HL = np.where(alike_HL & (value_HL == 1), 1 - far_L, low_HL)
    high_HL = np.where(alike_HL & (value_HL == least_L), least_L + far_L, high_HL)
    return np.maximum(low_HL, least_L), np.minimum(high_HL, 1.0)


class Tally:
    """Sums of one site. The last two columns are not roles: the maximum weight, and the weight on specials."""

    def __init__(self, columns: Sequence[Column], heads: int, resamples: int) -> None:
        width = len(columns) + 2
        self.columns = tuple(columns)
        self._least_L = np.array([*(column.least for column in columns), 0.0, 0.0])
        # hits [H, L] and trials [1, L] of sentences with even and with odd numbers
        self._halves = [RatioSums.none((heads, width), (1, width)) for _ in range(2)]
        self.chance_L = np.zeros(width)
        self.drawn_hits_RHL = np.zeros((resamples, heads, width), dtype=np.float32)
        self.drawn_trials_RL = np.zeros((resamples, width), dtype=np.float32)
        self.offsets_2LO = np.zeros((2, len(columns), 2 * FURTHEST + 1), dtype=np.int64)

    def add(
        self,
        hits_BHL: np.ndarray,
        trials_BL: np.ndarray,
        chance_BL: np.ndarray,
        offsets: Mapping[int, np.ndarray],
        counts_RB: np.ndarray,
        numbers_B: np.ndarray,
    ) -> None:
        """Add one batch. counts: how often each sentence is in each resample. numbers: indices of the sentences."""
        rows, heads, width = hits_BHL.shape
        for half in range(2):
            mine_B = numbers_B % 2 == half
            self._halves[half] += RatioSums.of(hits_BHL[mine_B], trials_BL[mine_B, None])
        self.chance_L += chance_BL.sum(0, dtype=np.float64)
        _add_product(self.drawn_hits_RHL.reshape(-1, heads * width), counts_RB, hits_BHL.reshape(rows, -1))
        _add_product(self.drawn_trials_RL, counts_RB, trials_BL)
        for start, table_2LO in offsets.items():
            self.offsets_2LO[:, start : start + table_2LO.shape[1]] += table_2LO

    @property
    def sums(self) -> RatioSums:
        """Of hits [H, L] and trials [1, L] of all sentences."""
        return self._halves[0] + self._halves[1]

    @property
    def trials_L(self) -> np.ndarray:
        return self.sums.b[0]

    def values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[H, L] each: hits / trials and its 95% interval over sentences; NaN without trials."""
        sums = self.sums
        sentences_L = sums.sentences[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn_RHL = self.drawn_hits_RHL / self.drawn_trials_RL[:, None]
        ends = percentile_intervals(drawn_RHL, units=sentences_L)
        return sums.value, *without_misses(sums.value, *sums.widen(*ends), sentences_L, self._least_L)

    def evidence(self, roles: Mapping[str, Role], reading: Reading) -> list[list[HalvedEvidence]]:
        """The evidence of each head, with verdicts not corrected yet. Labels without trials are left out."""
        values_HL, sums, trials_L = self.values(), self.sums, self.trials_L
        by_head: list[list[HalvedEvidence]] = [[] for _ in sums.a]
        halves = [self._intervals(half) for half in self._halves]
        for index, column in enumerate(self.columns):
            if not trials_L[index]:
                continue
            baseline = self.baseline(index)
            threshold = roles[column.role].threshold(column.label, baseline, reading)
            measured_threshold = self._threshold(index, roles[column.role], reading)
            offset = baseline if self._counts_offsets(index) else None
            p_H = binomial_p(sums, index, threshold, least=column.least, offset=offset)
            for head, (value, low, high) in enumerate(zip(*(part[:, index] for part in values_HL), strict=True)):
                holds = bool(low >= threshold and low > baseline) if trials_L[index] >= MIN_TRIALS else None
                by_head[head].append(
                    HalvedEvidence(
                        column.role, column.label, float(value), baseline, threshold, float(low), float(high),
                        int(trials_L[index]), holds, float(p_H[head]), None,
                        _below(Interval(value, low, high), measured_threshold),
                        (halves[0][head, index], halves[1][head, index]),
                        int(self._halves[1].b[0, index]), self.odd_baseline(index),
                        _below(halves[1][head, index], measured_threshold),
                    )
                )  # fmt: skip
        return by_head

    def baseline(self, column: int) -> float:
        """The share of the best fixed offset if offsets were counted, otherwise chance."""
        if self._counts_offsets(column):
            by_offset = self.offsets_2LO[:, column].sum(0)
            return float(by_offset[1:-1].max() / self.trials_L[column])  # the ends count all further offsets
        return float(self.chance_L[column] / self.trials_L[column])

    def _counts_offsets(self, column: int) -> bool:
        return bool(self.offsets_2LO[:, column].any())

    def odd_baseline(self, column: int) -> float:
        """The same on sentences with odd numbers, by the offset that is best on the others.

        The best of many offsets on the sentences it is measured on is too good: of eight equally likely ones it has 15%
        in 400 trials, not 12.5%.
        """
        even, odd = self.offsets_2LO[:, column, 1:-1]
        trials = float(self._halves[1].b[0, column])
        return float(odd[even.argmax()] / trials) if even.any() and trials else self.baseline(column)

    def _threshold(self, index: int, role: Role, reading: Reading) -> Interval:
        """The threshold of a column. A multiple of the share of the best offset has the interval of that share.

        Its value is on sentences with odd numbers, by the offset that is best on the others.
        """
        label = self.columns[index].label
        if not self._counts_offsets(index):
            return Interval(*[role.threshold(label, self.baseline(index), reading)] * 3)
        share, sentences = self.odd_baseline(index), float(self._halves[1].sentences[0, index])
        ends = share_interval(share * sentences, sentences) if sentences else (share, 0.0, 1.0)
        return Interval(*(role.threshold(label, end, reading) for end in ends))

    def _intervals(self, sums: RatioSums) -> dict[tuple[int, int], Interval]:
        """The share of hits of each head and label, by their indices, with a 95% t-interval over sentences."""
        sentences_1L = sums.sentences
        table_3HL = np.stack(
            [sums.value, *without_misses(sums.value, *sums.ends(sentences_1L), sentences_1L, self._least_L)]
        )
        return {index: Interval(*map(float, table_3HL[:, *index])) for index in np.ndindex(*table_3HL.shape[1:])}


def _below(share: Interval, threshold: Interval) -> bool:
    """Whether a share is certainly below a threshold, which varies independently of it."""
    return bool(threshold.value - share.value > np.hypot(share.high - share.value, threshold.value - threshold.low))


def _add_product(total: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """total += left @ right, by torch: numpy's threads would compete with those of the model."""
    torch.from_numpy(total).addmm_(torch.from_numpy(left), torch.from_numpy(right))
