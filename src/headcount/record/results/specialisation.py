"""The result of `headcount study specialisation`: whether specialised heads do the work and survive pruning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import MeasuredOn, Result
from headcount.record.results.roles import Evidence
from headcount.statistics import Comparison, Interval


@dataclass(frozen=True, kw_only=True)
class BestOfRole(Evidence):
    """The best head of a role and label, chosen and measured on different sentences."""

    head: str
    head_confidence: float
    has_role: bool  # has a role of the paper


@dataclass(frozen=True)
class HeadRow:
    """One head of one model."""

    role_names: tuple[str, ...]  # roles of the paper that it has
    labels: tuple[str, ...]  # the same with their labels
    head_confidence: float
    at_neighbour: float  # share of queries with the maximum at a neighbour
    loss_added: float  # by masking it alone, nats a token
    survives: bool  # kept by gates


@dataclass(frozen=True)
class SmallerModel:
    """The whole model against one without some heads."""

    num_heads: int  # remaining heads of the kind
    value: float  # of the metric
    lost: Comparison  # smaller minus whole, on the same examples


@dataclass(frozen=True)
class ModelRow:
    """One model."""

    weights: str
    measured_on: MeasuredOn
    metric: str
    unpruned: Interval  # of the metric
    without: SmallerModel  # all heads of the kind masked
    pruned: SmallerModel  # by gates
    best_of_roles: tuple[BestOfRole, ...]
    by_head: Mapping[str, HeadRow]
    more_with_role: Interval | None = None  # mean cost of heads with a role less that of others, over examples

    @property
    def with_role(self) -> list[HeadRow]:
        return [head for head in self.by_head.values() if head.role_names]


@dataclass(frozen=True)
class Survival:
    """Heads with a role that gates keep, compared with a random choice of as many heads in each layer."""

    num_heads: int  # with a role
    survivors: int
    expected: float  # by chance
    p: float


@dataclass(frozen=True)
class CostOfMasking:
    """Increase of the loss when a head is masked, in nats per token."""

    mean_with_role: float
    mean_without_role: float
    difference: Interval | None  # over models and their examples; null if no model has both
    num_models: int  # with both
    p: float


@dataclass(frozen=True)
class Specialisation(Result):
    """Several models, and statistics over all of them."""

    models: Mapping[str, ModelRow]
    measured_on: MeasuredOn  # of the model whose heads were chosen on most of these texts
    survival: Survival
    survival_by_role: Mapping[str, Survival]
    masking: CostOfMasking
    neighbour_correlations: tuple[float, ...]  # per model: attention to a neighbour against the cost of masking
    mean_neighbour_correlation: Interval | None
    models_with_label: Mapping[str, int]  # label -> models that have a head for it
    relations_of_models: tuple[tuple[str, ...], ...]  # per model: relations of the paper that a head follows


RESULT = Specialisation
