"""The result of `headcount attention`: where one head looks in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.record.result import Result


@dataclass(frozen=True)
class AttentionMap(Result):
    """Attention weights of one head, with the tokens on both sides."""

    head: str
    text: str
    queries: tuple[str, ...]  # tokens that look
    keys: tuple[str, ...]  # tokens that are looked at
    weights: tuple[tuple[float, ...], ...]  # a row per query


RESULT = AttentionMap
