"""The result of `headcount study tradeoff`: quality against remaining heads, for several ways of choosing them."""

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
    """One pruned model."""

    way: str  # the pipeline as text
    keep: int  # number of remaining heads among those that may be removed
    seed: int
    heads: tuple[str, ...]  # names of the remaining heads
    kept_by_kind: Mapping[str, int]  # kind -> number of remaining heads
    cut: Quality | None  # before fine-tuning, but after training of gates; None from scratch
    after: Quality  # at the end
    gates: GatesEnd | None = None  # of ways with gates
    gate_values: Mapping[str, float] | None = None  # head -> logit of its gate, higher is more open
    steps: int  # of training
    seconds: Seconds
    like: str | None = None  # for scratch: the way whose heads it has
    command: str  # that makes this model
    roles: Mapping[str, tuple[HeldRole, ...]] | None = None  # head -> roles, of heads that read the sentences
    unsure: tuple[str, ...] | None = None  # heads without a role of the paper that may have one; None: not recorded


@dataclass(frozen=True)
class Difference:
    """Second minus first on the same examples, the mean over seeds."""

    difference: float
    low: float  # 95% interval: over examples with one seed, else over seeds and examples
    high: float
    p: float | None  # two-sided, over examples; None with several seeds
    by_seed: Mapping[str, float]  # seed -> difference
    variance: Mapping[str, float]  # of the mean, by source: models, seeds, examples
    behind: str  # number of models and seeds behind the interval


@dataclass(frozen=True)
class WayCompared:
    """The final result of a way for one number of remaining heads."""

    way: str
    keep: int
    seeds: tuple[int, ...]
    lost: Difference  # against the whole model
    lost_tuned: Difference | None = None  # against the whole model, tuned as long by the way `against`
    against: Difference | None = None  # against another way with as many heads


@dataclass(frozen=True)
class WayKind:
    """A model by its heads of each kind, and one trained from scratch with the same heads."""

    way: str
    keep: int
    seed: int
    kept_by_kind: Mapping[str, int]  # kind -> number of remaining heads
    trained: Quality
    scratch: Quality | None  # None if there is none


@dataclass(frozen=True)
class BeforeAfter:
    """A number in the whole and in the pruned model."""

    whole: int
    left: int


@dataclass(frozen=True)
class RoleChanges:
    """Changes of the roles of the remaining heads that read the sentences."""

    num_heads: int
    same: int  # heads with the same roles
    gained: int  # with more
    lost_roles: int  # with fewer
    exchanged: int  # with others
    by_role: Mapping[str, BeforeAfter]  # heads that have it
    functions: BeforeAfter  # number of (role, label) pairs that heads have in the whole and in the pruned model


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
    gates: int | None = None  # of ways with gates; None without
    whole: int | None = None  # of the whole model; None if unknown


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Result):
    """Every way at every size, compared on the same examples."""

    metric: str
    higher_is_better: bool
    measured_on: MeasuredOn
    whole: Quality  # of the whole model
    gated: int  # number of heads that may be removed
    of: Mapping[str, int]  # kind -> heads of the whole model
    heads_by_site: Mapping[str, int]  # site -> heads of the whole model
    pruned: str  # heads that may be removed, in words
    points: tuple[Point, ...]
    against: str  # the way that others are compared with
    compared: tuple[WayCompared, ...]
    steps: StepsOfWays
    unfinished: int  # number of points that other processes work on
    seconds_by_way: Mapping[str, float]  # mean over its points
    distill: float | None = None  # weight of the distillation loss, if a way is distilled
    hard_concrete: tuple[HardConcrete, ...] | None = None  # distributions of gates, if a way is l0
    whole_roles: Mapping[str, tuple[HeldRole, ...]] | None = None  # head -> roles in the whole model
    looked: LookedAt | None = None
    drift: tuple[Drift, ...] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)  # part -> why it is missing
    all_kinds: tuple[WayKind, ...] | None = None  # None if only heads of one kind may be removed
    whole_heads: tuple[str, ...] | None = None  # names of the heads of the whole model; None in older records

    @property
    def known_heads(self) -> tuple[str, ...]:
        """Names of the heads of the whole model; of an older record those that its sites, points and roles give."""
        if self.whole_heads is not None:
            return self.whole_heads
        left = (name for point in self.points for name in point.heads)
        named = dict.fromkeys((*(self.whole_roles or ()), *left))
        numbered = [f"{site}.{index}" for site, count in self.heads_by_site.items() for index in range(count)]
        return tuple(numbered if set(named) <= set(numbered) else named)  # a pruned model has other numbers

    @property
    def behind(self) -> str:
        """Number of models and seeds behind the comparisons, in words, those with most seeds first."""
        rows = sorted(self.compared, key=lambda row: -len(row.lost.by_seed))
        return "; or ".join(dict.fromkeys(row.lost.behind for row in rows))


RESULT = Tradeoff
