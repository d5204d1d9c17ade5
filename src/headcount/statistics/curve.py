"""Curves: the mean of a curve between two points, as weights of its steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def curve_weights(
    positions: Sequence[float], start: float, end: float, *, knots: Sequence[float] | None = None
) -> np.ndarray:
    """[steps]: weights of the mean of a curve from start to end, with straight lines between its steps.

    positions: where the steps are, in rising order.
    knots: the only positions that count, with straight lines between them; by default all. Curves with other steps are
        compared by the same knots: a kind of four heads has steps at 75 and 100% beyond 60% of its heads, one of twelve
        also at 67 and 83%, and straight lines between few steps lie below a curve that falls late.
    """
    if knots is not None:
        at_knots_KS = np.stack([np.interp(knots, positions, step) for step in np.eye(len(positions))], axis=1)
        return np.asarray(curve_weights(knots, start, end) @ at_knots_KS)
    corners_X = np.array([start, *(position for position in positions if start < position < end), end])
    part_XS = np.stack([np.interp(corners_X, positions, step) for step in np.eye(len(positions))], axis=1)
    width_X = np.diff(corners_X)[:, None]
    return np.asarray((width_X * (part_XS[1:] + part_XS[:-1]) / 2).sum(0) / (end - start))
