"""The result of `headcount study tradeoff`: quality against the heads left, by several ways of choosing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headcount.record.result import MeasuredOn, Quality, Result
from headcount.record.results.prune import GatesEnd, HardConcrete, Seconds


@dataclass(frozen=True)
class HeldRole:
    """A role that a head has."""

    role: str
    label: str
    value: float
    baseline: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """One smaller model."""

    way: str  # the pipeline as text
    keep: int  # heads left of those that may go
    seed: int
    heads: tuple[str, ...]  # names of the heads left
    kept_by_kind: Mapping[str, int]  # kind -> heads left
    cut: Quality | None  # before fine-tuning, with gates after their training; None from scratch
    after: Quality  # at the end
    gates: GatesEnd | None = None  # where there were some
    gate_values: Mapping[str, float] | None = None  # head -> logit of its gate, higher is more open
    steps: int  # of training
    seconds: Seconds
    like: str | None = None  # the way whose heads a model from scratch has
    command: str  # that makes the same model
    roles: Mapping[str, tuple[HeldRole, ...]] | None = None  # head -> roles, of heads that read the sentences


@dataclass(frozen=True)
class Difference:
    """Second minus first on the same examples, the mean over seeds."""

    difference: float
    low: float  # 95% interval: over examples with one seed, else over seeds and examples
    high: float
    p: float | None  # two-sided, over examples; None with several seeds, where the interval decides
    by_seed: Mapping[str, float]  # seed -> difference
    variance: Mapping[str, float]  # of the mean, by where it comes from: models, seeds, examples
    behind: str  # how many models and seeds stand behind the interval


@dataclass(frozen=True)
class WayCompared:
    """The final result of a way for one number of heads left."""

    way: str
    keep: int
    seeds: tuple[int, ...]
    lost: Difference  # against the whole model
    lost_tuned: Difference | None = None  # against the whole model, tuned as long by the way `against`
    against: Difference | None = None  # against another way with as many heads


@dataclass(frozen=True)
class WayKind:
    """A model by the heads of each kind it has, beside one trained from scratch with the same."""

    way: str
    keep: int
    seed: int
    kept_by_kind: Mapping[str, int]  # kind -> heads left
    trained: Quality
    scratch: Quality | None  # None where there is none


@dataclass(frozen=True)
class BeforeAfter:
    """A number in the whole model and in the smaller one."""

    whole: int
    left: int


@dataclass(frozen=True)
class RoleChanges:
    """What became of the roles of the heads that are left and read the sentences."""

    num_heads: int
    same: int  # heads with the same roles
    gained: int  # with more
    lost_roles: int  # with fewer
    exchanged: int  # with others
    by_role: Mapping[str, BeforeAfter]  # heads that have it
    functions: BeforeAfter  # roles with their labels that a head of the whole model has, and those that are left


@dataclass(frozen=True)
class Drift:
    """The changes of one point."""

    way: str
    keep: int
    seed: int
    changes: RoleChanges


@dataclass(frozen=True)
class LookedAt:
    """Sentences that roles were measured on."""

    sentences: int
    trees: int  # sentences that have one
    fingerprint: str


@dataclass(frozen=True)
class StepsOfWays:
    """Training steps of one model."""

    tuned: int  # of every way that trains
    scratch: int  # from random weights
    gates: int | None = None  # of those with gates; None where there were none
    whole: int | None = None  # of the whole model before; None where its folder does not say


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Result):
    """Every way at every size, compared on the same examples."""

    metric: str
    higher_is_better: bool
    measured_on: MeasuredOn
    whole: Quality  # of the whole model
    gated: int  # heads that may go
    of: Mapping[str, int]  # kind -> heads of the whole model
    heads_by_site: Mapping[str, int]  # site -> heads of the whole model
    pruned: str  # which heads may go, in words
    points: tuple[Point, ...]
    against: str  # the way that others are compared with
    compared: tuple[WayCompared, ...]
    steps: StepsOfWays
    unfinished: int  # points that other processes are at
    seconds_by_way: Mapping[str, float]  # of one of its points, the mean
    distill: float | None = None  # share of the whole model's predictions in the loss, where a way is distilled
    hard_concrete: tuple[HardConcrete, ...] | None = None  # distributions of gates, where a way is l0
    whole_roles: Mapping[str, tuple[HeldRole, ...]] | None = None  # head -> roles in the whole model
    looked: LookedAt | None = None
    drift: tuple[Drift, ...] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)  # part -> why it is missing
    all_kinds: tuple[WayKind, ...] | None = None  # None where heads of one kind alone may go

    @property
    def behind(self) -> str:
        """How many models and seeds stand behind the comparisons, in words; that of the most seeds."""
        rows = sorted(self.compared, key=lambda row: len(row.lost.by_seed))
        return rows[-1].lost.behind if rows else ""


RESULT = Tradeoff
