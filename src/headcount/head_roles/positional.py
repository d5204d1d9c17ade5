"""positional: the head attends to one fixed offset before or after (Voita et al. 2019, section 5.1).

Offset 0, the token itself, is a separate role: `current-token`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headcount.head_roles.reading import Reading
from headcount.head_roles.role import TargetRole, Trials
from headcount.head_roles.sight import Sight, View


class Positional(TargetRole):
    """At least 90% of queries have their maximum at the same offset; every offset is reported."""

    name = "positional"

    def labels(self, reading: Reading) -> Sequence[str]:
        return [f"{offset:+d}" for offset in _offsets(reading)]

    def trials(self, view: View) -> Trials:
        share_BQ = view.asking_BQ / view.choices_BQ.clamp_min(1)
        trials, chance = [], []
        for offset in _offsets(view.reading):
            at_BQ = _at(view.seen_BQK, offset)
            counted_BQ = view.asking_BQ & at_BQ
            trials.append(view.asking_BQ.sum(-1) if view.reading.edges == "all" else counted_BQ.sum(-1))
            chance.append((share_BQ * at_BQ).sum(-1))
        return Trials(torch.stack(trials, -1), torch.stack(chance, -1))

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        furthest = sight.view.reading.furthest
        offset_BHQ = sight.place_BHQ - torch.arange(sight.place_BHQ.shape[-1])
        near_BHQ = sight.found_BHQ & (offset_BHQ.abs() <= furthest)
        counts = torch.zeros(*offset_BHQ.shape[:2], 2 * furthest + 1, dtype=torch.long)
        counts = counts.scatter_add(-1, (offset_BHQ + furthest).clamp(0, 2 * furthest), near_BHQ.long())
        return counts[..., [offset + furthest for offset in _offsets(sight.view.reading)]]

    def wanted(self, view: View, label: str) -> Tensor:
        return view.seen_BQK & view.queries.tokens_BT[..., None] & (view.offsets_QK == int(label))


def _at(seen_BQK: Tensor, offset: int) -> Tensor:
    """[B, Q]: whether the query sees a token at this offset."""
    there_BQ = torch.zeros(seen_BQK.shape[:2], dtype=torch.bool)
    line = seen_BQK.diagonal(offset=offset, dim1=1, dim2=2)
    start = max(0, -offset)
    there_BQ[:, start : start + line.shape[-1]] = line
    return there_BQ


def _offsets(reading: Reading) -> list[int]:
    return [offset for offset in range(-reading.furthest, reading.furthest + 1) if offset]


ROLE = Positional()
