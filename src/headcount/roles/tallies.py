"""Tallies: hits and trials of all roles, summed over sentences, plain and resampled. Memory depends on heads alone.

Shapes: B batch, H heads of a site, L labels of all roles, R resamples, O offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headcount.roles.evidence import MIN_TRIALS, Evidence
from headcount.roles.reading import Reading
from headcount.roles.role import FURTHEST, Role
from headcount.statistics import percentile_interval


@dataclass(frozen=True)
class Column:
    """One label of one role."""

    role: str
    label: str


class Tally:
    """Sums of one site. The last two columns are not roles: the maximum weight, and the weight on specials."""

    def __init__(self, columns: Sequence[Column], heads: int, resamples: int) -> None:
        width = len(columns) + 2
        self.columns = tuple(columns)
        self.hits_HL = np.zeros((heads, width))
        self.trials_L = np.zeros(width)
        self.chance_L = np.zeros(width)
        self.drawn_hits_RHL = np.zeros((resamples, heads, width), dtype=np.float32)
        self.drawn_trials_RL = np.zeros((resamples, width), dtype=np.float32)
        self.offsets_LO = np.zeros((len(columns), 2 * FURTHEST + 1), dtype=np.int64)

    def add(
        self,
        hits_BHL: np.ndarray,
        trials_BL: np.ndarray,
        chance_BL: np.ndarray,
        offsets: Mapping[int, np.ndarray],
        counts_RB: np.ndarray,
    ) -> None:
        """What one batch gave; counts: how often each of its sentences is in each resample."""
        rows, heads, width = hits_BHL.shape
        self.hits_HL += hits_BHL.sum(0, dtype=np.float64)
        self.trials_L += trials_BL.sum(0, dtype=np.float64)
        self.chance_L += chance_BL.sum(0, dtype=np.float64)
        _add_product(self.drawn_hits_RHL.reshape(-1, heads * width), counts_RB, hits_BHL.reshape(rows, -1))
        _add_product(self.drawn_trials_RL, counts_RB, trials_BL)
        for first, table_LO in offsets.items():
            self.offsets_LO[first : first + len(table_LO)] += table_LO

    def values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[H, L] each: hits / trials and its 95% interval; NaN where there were no trials."""
        with np.errstate(invalid="ignore", divide="ignore"):
            value_HL = self.hits_HL / self.trials_L
            drawn_RHL = self.drawn_hits_RHL / self.drawn_trials_RL[:, None]
        return value_HL, *percentile_interval(drawn_RHL)

    def evidence(self, roles: Mapping[str, Role], reading: Reading) -> list[list[Evidence]]:
        """For each head what was found; labels without a single trial are left out."""
        found: list[list[Evidence]] = [[] for _ in self.hits_HL]
        values_HL = self.values()
        for place, column in enumerate(self.columns):
            if not self.trials_L[place]:
                continue
            baseline = self.baseline(place)
            verdict = roles[column.role].verdict(column.label, baseline, reading)
            enough = self.trials_L[place] >= MIN_TRIALS
            for head, (value, low, high) in enumerate(zip(*(part[:, place] for part in values_HL), strict=True)):
                holds = value >= verdict.threshold and (low > baseline or not verdict.sure)
                found[head].append(
                    Evidence(
                        column.role, column.label, float(value), baseline, verdict.threshold,
                        float(low), float(high), int(self.trials_L[place]), bool(holds) if enough else None,
                    )
                )  # fmt: skip
        return found

    def baseline(self, column: int) -> float:
        """The best fixed offset where offsets were counted, chance elsewhere."""
        by_offset = self.offsets_LO[column]
        if by_offset.any():
            return float(by_offset[1:-1].max() / self.trials_L[column])  # the ends hold all that is further
        return float(self.chance_L[column] / self.trials_L[column])


def _add_product(total: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """total += left @ right, by torch: numpy's own threads would spin against those the model runs on."""
    torch.from_numpy(total).addmm_(torch.from_numpy(left), torch.from_numpy(right))
