"""Design effect: how many times larger a variance is because values of a group, such as heads of a layer, are alike.

Layers count as independent of each other. Shapes: N rows, H heads, G groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from headcount.statistics.interval import NORMAL, Interval, half_width, share_interval

_FEWEST_GROUPS = 3  # whose shares say how much groups differ


def design_effects(table_NH: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """[N, N]: of the correlation of every two rows, 1 + (m - 1) a b for groups of m values (Dutilleul 1993).

    a and b are the shares of the rows' variances that lie between groups. 1 without groups, or if all values are in
    one group, or each in its own: then nothing tells how alike values of a group are.
    """
    count, heads = table_NH.shape
    if not 1 < len(set(groups)) < heads:
        return np.ones((count, count))
    member_GH = _members(groups)
    shares_N = _shares_between(table_NH, member_GH)
    return np.asarray(1 + (_usual_size(member_GH) - 1) * np.outer(shares_N, shares_N))


def share_in_groups(having: Sequence[bool], groups: Sequence[Hashable]) -> Interval:
    """The share of heads that have a property; the exact interval of as many heads as those of groups are worth.

    Of groups of m heads with a share a of the variance between groups, H heads are worth H / (1 + (m - 1) a), and fewer
    by the square of the quantile of t that so many groups have (Korn and Graubard 1998). As independent heads, 20 to
    34% of intervals left out a true .5 that is 40% the layer's. Few heads that differ from the others hardly tell
    whether heads of a group are alike: a is no less than 1 / (1 + their number), without which a true .9 is left out in
    11%. If all heads are the same, each group counts as one head. No interval with fewer than three groups.
    """
    count, heads, number = sum(having), len(having), len(set(groups))
    if number < _FEWEST_GROUPS:
        return Interval(count / heads, float("nan"), float("nan"))
    if number == heads:
        return share_interval(count, heads)
    if count in (0, heads):
        return share_interval(number * count / heads, number)
    member_GH = _members(groups)
    alike = float(_shares_between(np.array([having], np.float64), member_GH)[0])
    design = 1 + (_usual_size(member_GH) - 1) * max(alike, 1 / (1 + min(count, heads - count)))
    worth = heads / design * (NORMAL / float(half_width(1.0, number))) ** 2
    return share_interval(count / heads * worth, worth)._replace(value=count / heads)


def _members(groups: Sequence[Hashable]) -> np.ndarray:
    """[G, H]: 1 where a head is in a group."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return (np.arange(len(numbers))[:, None] == [numbers[group] for group in groups]).astype(np.float64)


def _usual_size(member_GH: np.ndarray) -> float:
    """The size of the group of a head, on average over heads."""
    return float((member_GH.sum(1) ** 2).sum() / member_GH.shape[1])


def _shares_between(table_NH: np.ndarray, member_GH: np.ndarray) -> np.ndarray:
    """[N]: intraclass correlations of the rows by analysis of variance, for groups of any sizes; no less than 0.

    0 of a constant row.
    """
    (groups, heads), sizes_G = member_GH.shape, member_GH.sum(1)
    centred_NH = table_NH - table_NH.mean(-1, keepdims=True)
    between_N = (np.square(centred_NH @ member_GH.T) / sizes_G).sum(-1)
    within_N = (np.square(centred_NH).sum(-1) - between_N) / (heads - groups)
    size = (heads - (sizes_G**2).sum() / heads) / (groups - 1)
    between_N = between_N / (groups - 1)
    total_N = between_N + (size - 1) * within_N
    return np.clip(np.divide(between_N - within_N, total_N, out=np.zeros_like(total_N), where=total_N > 0), 0, 1)
