"""syntactic: the head connects the words of a dependency (Voita et al. 2019, section 5.2).

Measured between words: attention to a split word is the sum over its tokens, attention from it the mean. The baseline
is the best fixed offset of a relation on the same text, so that a head must do more than follow word order.
Shapes: B batch, H heads of a site, U units (words), L labels, N instances of relations, O offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headcount.head_roles.reading import Direction, Reading
from headcount.head_roles.role import FURTHEST, Trials
from headcount.head_roles.sight import Sight, View

# Names of directions as in the paper: from the verb to its subject and back.
_LETTERS = {"nsubj": ("v", "s"), "obj": ("v", "o"), "amod": ("n", "a"), "advmod": ("v", "a")}


class Instances(NamedTuple):
    """Trials of a batch: row, target unit, label and index of the query unit; and the query units by row."""

    row_N: Tensor
    key_N: Tensor
    label_N: Tensor
    asks_N: Tensor
    asking_row_M: Tensor
    asking_unit_M: Tensor


class Syntactic:
    """Accuracy on a relation in one direction, at least 10% above the best fixed offset."""

    kinds = ("self",)

    def labels(self, reading: Reading) -> Sequence[str]:
        return [label(relation, direction) for relation, direction in pairs(reading)]

    def trials(self, view: View) -> Trials | None:
        if not view.batch.has_words:
            return None
        instances = _instances(view)
        if not len(instances.row_N):
            return None
        rows, width = len(view.batch.rows), len(pairs(view.reading))
        flat_N = instances.row_N * width + instances.label_N
        trials_BL = torch.bincount(flat_N, minlength=rows * width).view(rows, width)
        offset_N = (instances.key_N - instances.asking_unit_M[instances.asks_N]).clamp(-FURTHEST, FURTHEST) + FURTHEST
        half_N = torch.from_numpy(view.batch.numbers % 2)[instances.row_N]
        column_N = half_N * width + instances.label_N
        size = 2 * width * (2 * FURTHEST + 1)
        by_offset = torch.bincount(column_N * (2 * FURTHEST + 1) + offset_N, minlength=size)
        return Trials(trials_BL, torch.zeros(rows, width), instances, by_offset.view(2, width, -1).numpy())

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        instances: Instances = trials.targets
        rows, width = trials.trials_BL.shape
        place_MH = sight.words(instances.asking_row_M, instances.asking_unit_M)
        right_NH = place_MH[instances.asks_N] == instances.key_N[:, None]
        hits = torch.zeros(rows * width, place_MH.shape[1])
        hits.index_add_(0, instances.row_N * width + instances.label_N, right_NH.float())
        return hits.view(rows, width, -1).transpose(1, 2)

    def wanted(self, view: View, label: str) -> Tensor:
        """From every token of a word to every token of its partners."""
        words_BUT, wanted_BQK = view.batch.words_BUT.bool(), torch.zeros_like(view.seen_BQK)
        instances = _instances(view)
        of_label_N = instances.label_N == self.labels(view.reading).index(label)
        asks_N = instances.asks_N[of_label_N]
        for row, query, key in zip(
            instances.row_N[of_label_N], instances.asking_unit_M[asks_N], instances.key_N[of_label_N], strict=True
        ):
            wanted_BQK[row] |= words_BUT[row, query][:, None] & words_BUT[row, key]
        return wanted_BQK & view.seen_BQK

    def threshold(self, label: str, baseline: float, reading: Reading) -> float:
        relative = reading.margin == "relative"
        return baseline * (1 + reading.excess) if relative else baseline + reading.excess


def pairs(reading: Reading) -> list[tuple[str, Direction]]:
    return [(relation, direction) for relation in reading.relations for direction in reading.directions]


def label(relation: str, direction: Direction) -> str:
    head, dependent = _LETTERS.get(relation, ("h", "d"))
    return f"{relation} {head}->{dependent}" if direction == "head->dependent" else f"{relation} {dependent}->{head}"


def _instances(view: View) -> Instances:
    number = {pair: index for index, pair in enumerate(pairs(view.reading))}
    rows = []
    for row, sentence in enumerate(view.batch.rows):
        for dependent, head, relation in sentence.arcs:
            for direction in view.reading.directions:
                query, key = (head, dependent) if direction == "head->dependent" else (dependent, head)
                if not view.causal or key <= query:
                    rows.append((row, query, key, number[relation, direction]))
    found_N4 = torch.from_numpy(np.array(rows, dtype=np.int64).reshape(-1, 4))
    if view.allowed_BQK is not None:
        found_N4 = found_N4[_within(view)[found_N4[:, 0], found_N4[:, 1], found_N4[:, 2]]]
    row_N, query_N, key_N, label_N = found_N4.unbind(-1)
    units = view.batch.words_BUT.shape[1]
    asking_M, asks_N = torch.unique(row_N * units + query_N, return_inverse=True)
    return Instances(row_N, key_N, label_N, asks_N, asking_M // units, asking_M % units)


def _within(view: View) -> Tensor:
    """[B, U, U]: whether a token of one word can attend to a token of another."""
    words_BUT = view.batch.words_BUT.float()
    return words_BUT @ view.seen_BQK.float() @ words_BUT.mT > 0


ROLE = Syntactic()
