"""Tallies: hits and trials of all roles, summed over sentences, plain and resampled, in memory per head only.

Shapes: B batch, H heads of a site, L labels of all roles, R resamples, O offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch

from headcount.head_roles.evidence import MIN_TRIALS, HalvedEvidence
from headcount.head_roles.reading import Reading
from headcount.head_roles.role import FURTHEST, Role
from headcount.statistics import Interval, half_width, percentile_interval


@dataclass(frozen=True)
class Column:
    """One label of one role."""

    role: str
    label: str


@dataclass
class _Sums:
    """Sums over sentences from which the value of a label, its error and its test are computed."""

    hits_HL: np.ndarray
    trials_L: np.ndarray
    hits_squared_HL: np.ndarray
    hits_by_trials_HL: np.ndarray
    trials_squared_L: np.ndarray

    @classmethod
    def none(cls, heads: int, width: int) -> _Sums:
        return cls(*(np.zeros(shape) for shape in ((heads, width), width, (heads, width), (heads, width), width)))

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def add(self, hits_BHL: np.ndarray, trials_BL: np.ndarray) -> None:
        hits_BHL, trials_BL = hits_BHL.astype(np.float64), trials_BL.astype(np.float64)
        self.hits_HL += hits_BHL.sum(0)
        self.trials_L += trials_BL.sum(0)
        self.hits_squared_HL += np.square(hits_BHL).sum(0)
        self.hits_by_trials_HL += (hits_BHL * trials_BL[:, None]).sum(0)
        self.trials_squared_L += np.square(trials_BL).sum(0)

    def p(self, label: int, threshold: float, *, signed: bool = False) -> np.ndarray:
        """[H]: one-sided binomial p-value that the share of hits is below the threshold, over sentences.

        Trials of a sentence may depend on each other, so n is not their number but (sum of trials)^2 / (sum of squared
        trials): the number of sentences if all have equally many trials. The test is then exact, and conservative if
        trials depend less on each other; a variance estimated from few misses would not be. signed: values are between
        -1 and 1.
        """
        from scipy.special import betainc

        share_H = self.hits_HL[:, label] / self.trials_L[label]
        if signed:
            share_H, threshold = (1 + share_H) / 2, (1 + threshold) / 2
        if threshold >= 1:
            return np.ones_like(share_H)
        count = self.sentences(label)
        hits_H = np.clip(share_H * count, 1e-12, count)
        return betainc(hits_H, count - hits_H + 1, max(threshold, 0.0))  # P(X >= hits) for real numbers

    def sentences(self, label: int) -> float:
        """As many as would vary alike if all had equally many trials: (sum of trials)^2 / (sum of squared trials)."""
        trials, squares = float(self.trials_L[label]), float(self.trials_squared_L[label])
        return trials**2 / squares if squares else 0.0

    def intervals(self, label: int) -> list[Interval]:
        """The share of hits of each head, with a 95% interval over sentences; NaN without trials."""
        trials, sentences = float(self.trials_L[label]), self.sentences(label)
        if not trials:
            return [Interval(float("nan"), float("nan"), float("nan"))] * len(self.hits_HL)
        share_H = self.hits_HL[:, label] / trials
        squares_H = self.hits_squared_HL[:, label] - 2 * share_H * self.hits_by_trials_HL[:, label]
        squares_H += np.square(share_H) * self.trials_squared_L[label]  # of hits - share x trials, over sentences
        bessel = sentences / max(sentences - 1, 1e-300)
        half_H = half_width(np.sqrt(bessel * np.maximum(squares_H, 0.0)) / trials, sentences)
        ends = without_misses(share_H, share_H - half_H, share_H + half_H, sentences)
        return [Interval(*map(float, row)) for row in zip(share_H, *ends, strict=True)]


def without_misses(
    value_H: np.ndarray, low_H: np.ndarray, high_H: np.ndarray, sentences: float
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of intervals of shares; if all trials were hits, or none, the far end is the exact one over sentences.

    Resamples of hits alone are all alike: a head that hits 97% of 30 sentences would have 1 (1 to 1) in 40% of cases.
    """
    exact = 0.025 ** (1 / sentences) if sentences else np.nan
    alike_H = low_H == high_H
    return np.where(alike_H & (value_H == 1), exact, low_H), np.where(alike_H & (value_H == 0), 1 - exact, high_H)


class Tally:
    """Sums of one site. The last two columns are not roles: the maximum weight, and the weight on specials."""

    def __init__(self, columns: Sequence[Column], heads: int, resamples: int) -> None:
        width = len(columns) + 2
        self.columns = tuple(columns)
        self._sums = [_Sums.none(heads, width) for _ in range(2)]  # of sentences with even and with odd numbers
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
        for half, sums in enumerate(self._sums):
            sums.add(hits_BHL[numbers_B % 2 == half], trials_BL[numbers_B % 2 == half])
        self.chance_L += chance_BL.sum(0, dtype=np.float64)
        _add_product(self.drawn_hits_RHL.reshape(-1, heads * width), counts_RB, hits_BHL.reshape(rows, -1))
        _add_product(self.drawn_trials_RL, counts_RB, trials_BL)
        for start, table_2LO in offsets.items():
            self.offsets_2LO[:, start : start + table_2LO.shape[1]] += table_2LO

    @property
    def hits_HL(self) -> np.ndarray:
        return self._sums[0].hits_HL + self._sums[1].hits_HL

    @property
    def trials_L(self) -> np.ndarray:
        return self._sums[0].trials_L + self._sums[1].trials_L

    def values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[H, L] each: hits / trials and its 95% interval; NaN without trials."""
        with np.errstate(invalid="ignore", divide="ignore"):
            value_HL = self.hits_HL / self.trials_L
            drawn_RHL = self.drawn_hits_RHL / self.drawn_trials_RL[:, None]
        both, ends = self._sums[0] + self._sums[1], []
        for label, value_H in enumerate(value_HL.T):
            sentences = both.sentences(label)
            ends.append(
                without_misses(value_H, *percentile_interval(drawn_RHL[..., label], units=sentences), sentences)
            )
        low_HL, high_HL = (np.stack(rows, axis=1) for rows in zip(*ends, strict=True))
        return value_HL, low_HL, high_HL

    def evidence(self, roles: Mapping[str, Role], reading: Reading) -> list[list[HalvedEvidence]]:
        """The evidence of each head, with verdicts not corrected yet. Labels without trials are left out."""
        by_head: list[list[HalvedEvidence]] = [[] for _ in self.hits_HL]
        values_HL, trials_L = self.values(), self.trials_L
        both = self._sums[0] + self._sums[1]
        for index, column in enumerate(self.columns):
            if not trials_L[index]:
                continue
            baseline = self.baseline(index)
            threshold = roles[column.role].threshold(column.label, baseline, reading)
            p_H = both.p(index, threshold, signed=column.label in getattr(roles[column.role], "signed", ()))
            halves = [half.intervals(index) for half in self._sums]
            for head, (value, low, high) in enumerate(zip(*(part[:, index] for part in values_HL), strict=True)):
                holds = bool(low >= threshold and low > baseline) if trials_L[index] >= MIN_TRIALS else None
                by_head[head].append(
                    HalvedEvidence(
                        column.role, column.label, float(value), baseline, threshold, float(low), float(high),
                        int(trials_L[index]), holds, float(p_H[head]), None, (halves[0][head], halves[1][head]),
                        self.odd_baseline(index),
                    )
                )  # fmt: skip
        return by_head

    def baseline(self, column: int) -> float:
        """The share of the best fixed offset if offsets were counted, otherwise chance."""
        by_offset = self.offsets_2LO[:, column].sum(0)
        if by_offset.any():
            return float(by_offset[1:-1].max() / self.trials_L[column])  # the ends count all further offsets
        return float(self.chance_L[column] / self.trials_L[column])

    def odd_baseline(self, column: int) -> float:
        """The same on sentences with odd numbers, by the offset that is best on the others.

        The best of many offsets on the sentences it is measured on is too good: of eight equally likely ones it has 15%
        in 400 trials, not 12.5%.
        """
        even, odd = self.offsets_2LO[:, column, 1:-1]
        trials = float(self._sums[1].trials_L[column])
        return float(odd[even.argmax()] / trials) if even.any() and trials else self.baseline(column)


def _add_product(total: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """total += left @ right, by torch: numpy's threads would compete with those of the model."""
    torch.from_numpy(total).addmm_(torch.from_numpy(left), torch.from_numpy(right))
