"""Role: the interface of a role: its trials, the hits of a head, and the threshold.

A trial is a query, or an instance of a relation, for which a head of this role would attend to certain keys. The value
of a role is hits / trials. Trials and chance depend only on the text and are computed once for all heads of a kind.
Shapes: B batch, H heads of a site, Q queries, K keys, L labels of a role, O offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from headcount.head_roles.reading import Reading
from headcount.head_roles.sight import Sight, View
from headcount.registry import Registry

FURTHEST = 60  # offsets between words are counted up to here on both sides


@dataclass(frozen=True)
class Trials:
    """The trials of a role in a batch."""

    trials_BL: Tensor
    chance_BL: Tensor  # expected hits of a head that attends at random
    targets: Any = None  # for `hits`
    # trials by offset, of sentences with even and with odd numbers, if the baseline is the best fixed offset
    offsets_2LO: np.ndarray | None = None


class Role(Protocol):
    """One role: a file of this folder that defines ROLE."""

    kinds: Sequence[str]  # self, cross: the attention it is defined for

    def labels(self, reading: Reading) -> Sequence[str]: ...

    def trials(self, view: View) -> Trials | None:
        """The trials of a batch; None if it has none."""

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        """[B, H, L]: number of hits."""

    def threshold(self, label: str, baseline: float, reading: Reading) -> float:
        """The value that the lower end of the interval must reach."""


class TargetRole(Role):
    """A role whose hits are maxima on targets: one of self-attention with fixed labels, unless it overrides these."""

    name: str  # in `THRESHOLDS`
    kinds: Sequence[str] = ("self",)
    fixed_labels: Sequence[str]

    def labels(self, reading: Reading) -> Sequence[str]:
        return self.fixed_labels

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        return looking(trials, sight)

    def threshold(self, label: str, baseline: float, reading: Reading) -> float:
        return reading.threshold(self.name)


@runtime_checkable
class Playable(Role, Protocol):
    """A role that defines targets for queries, so that it can replace a head (`head_roles.playing`)."""

    def wanted(self, view: View, label: str) -> Tensor:
        """[B, Q, K] bool: the target keys of each query; none if the role has no target for it."""


roles: Registry[Role] = Registry("role", "headcount.head_roles", "ROLE")


def asking(view: View, targets: Sequence[Tensor], queries: Sequence[Tensor] | None = None) -> Trials:
    """Trials of queries that have a target among the keys they can attend to.

    targets: for each label [B, K], the same for all queries, or [B, Q, K].
    queries: for each label, the queries [B, Q] that count. By default all that can attend to several keys.
    """
    visible = [(target[:, None] if target.dim() == 2 else target) & view.seen_BQK for target in targets]
    reachable = [target_BQK.sum(-1) for target_BQK in visible]
    counted = [
        view.asking_BQ & (reach_BQ > 0) & (queries[label] if queries else True)
        for label, reach_BQ in enumerate(reachable)
    ]
    chance = [
        (reach_BQ / view.choices_BQ.clamp_min(1) * counted_BQ).sum(-1)
        for reach_BQ, counted_BQ in zip(reachable, counted, strict=True)
    ]
    return Trials(
        torch.stack([counted_BQ.sum(-1) for counted_BQ in counted], -1),
        torch.stack(chance, -1),
        list(zip(visible, counted, strict=True)),
    )


def looking(trials: Trials, sight: Sight) -> Tensor:
    """Hits of trials made by `asking`: the maximum is one of the targets."""
    hits = []
    for wanted_BQK, counted_BQ in trials.targets:
        place_BHQ = sight.place_BHQ.clamp_min(0)
        on_BHQ = wanted_BQK[:, None].expand(-1, place_BHQ.shape[1], -1, -1).gather(-1, place_BHQ[..., None])[..., 0]
        hits.append((on_BHQ & sight.found_BHQ & counted_BQ[:, None]).sum(-1))
    return torch.stack(hits, -1)
