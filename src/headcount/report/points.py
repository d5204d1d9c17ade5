"""Points of a trade-off: models with fewer heads, and apart from them all heads tuned as long, which is the control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Point = dict[str, Any]


def smaller(parts: Mapping[str, Any]) -> list[Point]:
    """Those of smaller models; if there are none, what there is."""
    points: list[Point] = parts["tradeoff"]
    return [point for point in points if point["keep"] < parts["gated"]] or points


def control(parts: Mapping[str, Any]) -> list[Point]:
    """Those with all heads left, beside smaller ones."""
    found = smaller(parts)
    return [point for point in parts["tradeoff"] if point not in found]
