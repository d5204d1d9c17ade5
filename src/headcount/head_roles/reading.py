"""Reading: variants of the definitions of roles. The paper leaves some of them open; each variant is an option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isnan
from numbers import Integral, Real
from typing import Any, Literal, Self, get_args

from headcount.errors import UsageError, check_name, check_type

Margin = Literal["relative", "points"]
Edges = Literal["possible", "all"]
Direction = Literal["head->dependent", "dependent->head"]

RELATIONS = ("nsubj", "obj", "amod", "advmod")  # those of the paper; its dobj is obj today
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
THRESHOLDS = {
    "positional": 0.9,  # Voita et al. 2019, section 5.1
    "rare": 0.5,
    "current-token": 0.9,  # offset 0, with the same threshold as the others
    "delimiter": 0.5,
    "same-token": 0.5,
    "induction": 0.5,
    "alignment": 0.5,
}


@dataclass(frozen=True)
class Reading:
    """The settings of the definitions of roles.

    margin: "relative": syntactic from (1 + excess) x baseline on; "points": from baseline + excess on.
    diagonal: whether a token may be its own maximum.
    edges: "possible": a query counts for an offset only if there is a token at that offset; "all": every query counts.
    thresholds: by role, instead of the defaults.
    furthest: offsets from -furthest to +furthest without 0 are reported.
    common: a sentence counts for the rare role if its rarest token is not among this many most frequent ones. By
        default the number that corresponds to the paper's 500 of 32,000 (`Frequencies.common`).
    """

    relations: Sequence[str] = RELATIONS
    directions: Sequence[Direction] = DIRECTIONS
    margin: Margin = "relative"
    excess: float = 0.10
    diagonal: bool = True
    edges: Edges = "possible"
    thresholds: Mapping[str, float] = field(default_factory=dict)
    furthest: int = 5
    common: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The reading of these options. Raises UsageError if one is not known."""
        for name in options:
            check_name("option", name, [field.name for field in fields(cls)])
        return cls(**options)

    def __post_init__(self) -> None:
        check_name("margin", self.margin, get_args(Margin))
        check_name("reading of edges", self.edges, get_args(Edges))
        for direction in self.directions:
            check_name("direction", direction, DIRECTIONS)
        check_type("thresholds", self.thresholds, Mapping, "a share for each role, such as {'positional': 0.9}")
        for role, share in self.thresholds.items():
            check_name("role with a threshold", role, THRESHOLDS)
            if not isinstance(share, Real) or isnan(share):
                raise UsageError(f"The threshold of {role} must be a share such as 0.9; got {share!r}.")
        check_type("furthest", self.furthest, Integral, "a whole number of tokens")
        check_type("common", self.common, Integral | None, "a whole number of tokens, or None")
        check_type("excess", self.excess, Real, "a number such as 0.1")
        if isinstance(self.relations, str) or not all(isinstance(name, str) and name for name in self.relations):
            raise UsageError(f"relations must be a list of names such as nsubj; got {self.relations!r}.")
        if self.furthest < 1 or (self.common or 0) < 0 or self.excess < 0:
            seen = f"{self.furthest}, {self.common}, {self.excess}"
            raise UsageError(f"furthest must be at least 1, common and excess at least 0; got {seen}.")
        renamed = tuple(dict.fromkeys("obj" if name == "dobj" else name for name in self.relations))
        object.__setattr__(self, "relations", renamed)

    def threshold(self, role: str) -> float:
        return self.thresholds.get(role, THRESHOLDS[role])
