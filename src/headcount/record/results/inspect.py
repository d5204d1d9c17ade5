"""The result of `headcount inspect`: which heads a model has and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headcount.record.result import Result


@dataclass(frozen=True)
class KindCost:
    """The attention of one kind, all its layers together."""

    num_heads: int
    parameters: int
    flops: int | None


@dataclass(frozen=True)
class Cost:
    """What one example costs."""

    length: int  # tokens of the example, and of its target in an encoder-decoder; limited by the model
    parameters: int
    flops: int | None  # of the matrix products of one forward pass; None if no example could be generated
    cache_bytes: int  # keys and values held while generating
    kinds: Mapping[str, KindCost]


@dataclass(frozen=True)
class SiteRow:
    """One multi-head attention module."""

    site: str
    kind: str
    layer: int
    indices: tuple[int, ...]  # original numbers of its heads
    total: int  # heads that it had in the original model
    head_dim: int
    kv_heads: int
    family: str
    path: str
    parameters: int
    parameters_per_head: int
    obstacle: str | None  # why its heads can only be masked; None if they can be removed

    @property
    def num_heads(self) -> str:
        """Number of heads, with that of the original model if some were removed."""
        left = len(self.indices)
        return str(left) if left == self.total else f"{left}/{self.total}"


@dataclass(frozen=True)
class Fit:
    """Whether a runtime accepts a model as it is."""

    title: str  # of the runtime
    fits: bool
    words: tuple[str, ...]  # reasons or costs


@dataclass(frozen=True)
class Inspection(Result):
    """The attention sites of a model and what it costs."""

    architecture: str
    sites: tuple[SiteRow, ...]
    cost: Cost
    runtimes: Mapping[str, Fit] | None = None  # format -> whether it can be exported; None: not checked

    @property
    def num_heads(self) -> int:
        return sum(len(site.indices) for site in self.sites)


RESULT = Inspection
