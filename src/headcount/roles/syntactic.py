"""syntactic: the head connects the words of a dependency (Voita et al. 2019, section 5.2).

Measured between words: attention to a split word is the sum over its pieces, from it their mean. The baseline is the
offset that finds most partners of a relation on the same text, so that a head must know more than word order.
Shapes: B batch, H heads of a site, U units (words), L labels, N instances of relations, O offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headcount.roles.reading import Direction, Reading
from headcount.roles.role import FURTHEST, Trials, Verdict
from headcount.roles.sight import Sight, View

# As the paper writes them: from the verb to its subject and back.
_LETTERS = {"nsubj": "vs", "obj": "vo", "amod": "na", "advmod": "va"}


class Instances(NamedTuple):
    """Every trial of a batch: row, unit that looks, unit to be looked at, label."""

    row_N: Tensor
    query_N: Tensor
    key_N: Tensor
    label_N: Tensor


class Syntactic:
    """Accuracy on a relation in one direction, at least 10% above the best fixed offset."""

    kinds = ("self",)

    def labels(self, reading: Reading) -> Sequence[str]:
        return [label(relation, direction) for relation, direction in pairs(reading)]

    def trials(self, view: View) -> Trials | None:
        if not view.batch.has_words:
            return None
        found = _instances(view)
        rows, width = len(view.batch.rows), len(pairs(view.reading))
        flat_N = found.row_N * width + found.label_N
        trials_BL = torch.bincount(flat_N, minlength=rows * width).view(rows, width)
        offset_N = (found.key_N - found.query_N).clamp(-FURTHEST, FURTHEST) + FURTHEST
        by_offset = torch.bincount(found.label_N * (2 * FURTHEST + 1) + offset_N, minlength=width * (2 * FURTHEST + 1))
        return Trials(trials_BL, torch.zeros(rows, width), found, by_offset.view(width, -1).numpy())

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        found: Instances = trials.targets
        place_BHU = sight.word_place_BHU
        rows, width = trials.trials_BL.shape
        if place_BHU is None:
            return torch.zeros(rows, sight.place_BHQ.shape[1], width)
        right_NH = place_BHU[found.row_N, :, found.query_N] == found.key_N[:, None]
        hits = torch.zeros(rows * width, place_BHU.shape[1])
        hits.index_add_(0, found.row_N * width + found.label_N, right_NH.float())
        return hits.view(rows, width, -1).transpose(1, 2)

    def verdict(self, label: str, baseline: float, reading: Reading) -> Verdict:
        relative = reading.margin == "relative"
        return Verdict(baseline * (1 + reading.excess) if relative else baseline + reading.excess, sure=False)


def pairs(reading: Reading) -> list[tuple[str, Direction]]:
    return [(relation, direction) for relation in reading.relations for direction in reading.directions]


def label(relation: str, direction: Direction) -> str:
    head, dependent = _LETTERS.get(relation, "hd")
    return f"{relation} {head}->{dependent}" if direction == "head->dependent" else f"{relation} {dependent}->{head}"


def _instances(view: View) -> Instances:
    number = {pair: place for place, pair in enumerate(pairs(view.reading))}
    rows = []
    for row, sentence in enumerate(view.batch.rows):
        for dependent, head, relation in sentence.arcs:
            for direction in view.reading.directions:
                query, key = (head, dependent) if direction == "head->dependent" else (dependent, head)
                if not view.causal or key <= query:
                    rows.append((row, query, key, number[relation, direction]))
    table = torch.from_numpy(np.array(rows, dtype=np.int64).reshape(-1, 4))
    return Instances(*table.unbind(-1))


ROLE = Syntactic()
