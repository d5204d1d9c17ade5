"""The result of `headcount roles`: what every head does, with evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import Result
from headcount.statistics import Comparison, Correlation, Interval, holm

_ALPHA = 0.05  # for all heads together
MIN_TRIALS = 30  # fewer are too few for a verdict: 2 of 2 is 100%


@dataclass(frozen=True)
class Evidence:
    """How one head scores on one role and label, such as `positional -1` or `syntactic nsubj v->s`.

    Attributes:
        role: Name of the role.
        label: Label of the role: an offset, a relation with its direction, and so on.
        value: Share of trials in which the head attends to a target. For `monotone` from -1 to 1.
        baseline: Value without such a head: chance, or the best fixed offset.
        threshold: Value that the lower end of the interval has to reach.
        low: Lower end of the 95% bootstrap interval over sentences.
        high: Upper end.
        trials: Number of queries, or of instances of a relation.
        holds: The verdict: whether the head has the role. None if there are fewer than MIN_TRIALS trials.
        p: One-sided p-value that the value is below the threshold.
        corrected: The p-value after Holm's correction for all heads and labels with enough trials.
        excluded: Whether the value is certainly below the threshold. Where that is a multiple of the share of the best
            offset, it was measured too. None in records that do not say it.
    """

    role: str
    label: str
    value: float  # share of trials in which the head attends to a target; monotone: from -1 to 1
    baseline: float  # value without such a head: chance, or the best fixed offset
    threshold: float  # the value that the lower end of the interval has to reach
    low: float  # 95% bootstrap interval over sentences
    high: float
    trials: int  # queries, or instances of a relation, behind the value
    holds: bool | None  # the verdict; None: fewer than MIN_TRIALS trials
    p: float | None = None  # one-sided p-value that the value is below the threshold; as if sentences were equally long
    corrected: float | None = None  # p after Holm's correction for all heads and labels that have enough trials
    excluded: bool | None = None  # whether the value is certainly below the threshold; null: not said

    @property
    def certain(self) -> bool:
        """Whether the whole interval agrees with the verdict. It always does if the role holds."""
        return bool(self.holds) or (self.holds is False and self.below)

    @property
    def below(self) -> bool:
        """Whether the value is certainly below the threshold. Older records do not say it of syntax."""
        return self.role != "syntactic" and self.high < self.threshold if self.excluded is None else self.excluded

    @property
    def margin(self) -> float:
        """Difference between the value and the threshold."""
        return self.value - self.threshold

    def __str__(self) -> str:
        return f"{self.role} {self.label} {self.value:.2f} (baseline {self.baseline:.2f})"


@dataclass(frozen=True, kw_only=True)
class Best(Evidence):
    """The best head of a role and label among those of a kind."""

    kind: str
    head: str
    held_out: bool  # chosen on one half of the sentences and measured on the other


@dataclass(frozen=True)
class PositionalHeads:
    """Confidence of positional heads and of the others."""

    labels: Mapping[str, str]  # head -> offset
    confidence: Mapping[str, float]
    above: int  # heads with a confidence above .8
    mean_confidence_of_others: float


@dataclass(frozen=True)
class RareHead:
    """The head of the lowest layer that attends to rare tokens most often, with the rank of its confidence."""

    head: str
    rarest: float  # share of queries with the maximum at the rarest token
    two_rarest: float
    chance_rarest: float
    chance_two_rarest: float
    queries: int
    confidence: float
    confidence_rank_in_layer: int
    holds: bool | None


@dataclass(frozen=True)
class PaperNumbers:
    """The numbers of section 5 of the paper for this model's encoder (or only stack)."""

    kind: str
    num_heads: int
    by_role: Mapping[str, int]  # number of heads with each role
    without_role: int
    positional: PositionalHeads
    rare: RareHead | None  # None if no sentence has rare tokens


@dataclass(frozen=True)
class PlayedHead:
    """Change of the metric without a head, and with its role instead."""

    role: str
    label: str
    off: Comparison
    played: Comparison  # the role, and the head's attention for queries without a target
    alone: Comparison  # the role, and zero output for queries without a target
    share_kept: Interval | None  # share of the head's effect that the role gives; None if the head has no effect


@dataclass(frozen=True)
class Played:
    """Heads replaced by their roles."""

    metric: str
    value: float  # of the whole model
    by_head: Mapping[str, PlayedHead]

    @property
    def certain(self) -> dict[str, Interval]:
        """The shares that roles keep, of heads that are worth something for certain by Holm's correction.

        Of 20 heads that are worth nothing, one or more have a share in 36% of cases, as each interval is for one head.
        """
        corrected = holm([head.off.p for head in self.by_head.values()])
        return {
            name: head.share_kept
            for (name, head), p in zip(self.by_head.items(), corrected, strict=True)
            if head.share_kept and p < _ALPHA
        }


@dataclass(frozen=True)
class RolesFound(Result):
    """Confidence, evidence and roles of every head on a corpus."""

    confidence: Mapping[str, Interval]  # the mean largest attention weight
    left_out: Mapping[str, float]  # share of attention on special tokens
    roles: Mapping[str, tuple[Evidence, ...]]  # roles of each head, largest margin first
    evidence: Mapping[str, tuple[Evidence, ...]]  # for and against every role
    best: tuple[Best, ...]  # for each kind, role and label
    relative: Mapping[str, Mapping[str, int]]  # relation -> offset of the other word -> instances
    relations: Mapping[str, int]  # instances of each relation
    paper: PaperNumbers
    sentences: int
    trees: int  # sentences that have one
    skipped: Mapping[str, int]  # reason -> sentences left out, or relations where the reason names these
    persons: Mapping[str, int]  # subjects by grammatical person: 1, 2, 3; empty if unknown
    relevance: Mapping[str, float] | None = None  # from another record
    agreement: Mapping[str, Correlation] | None = None  # kind -> of relevance with confidence
    played: Played | None = None  # if requested

    @property
    def syntax(self) -> tuple[Best, ...]:
        """The best head of each dependency."""
        return tuple(row for row in self.best if row.role == "syntactic")


RESULT = RolesFound
