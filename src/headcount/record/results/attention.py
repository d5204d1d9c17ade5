"""The result of `headcount attention`: the attention of one head in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.record.result import Result


@dataclass(frozen=True)
class AttentionMap(Result):
    """Attention weights of one head, with the tokens on both sides."""

    head: str
    text: str
    queries: tuple[str, ...]  # tokens of the queries
    keys: tuple[str, ...]  # tokens of the keys
    weights: tuple[tuple[float, ...], ...]  # a row per query


RESULT = AttentionMap
