"""Design effect: how many times larger a variance is because values of a group, such as heads of a layer, are alike.

Shapes: N rows, H heads, G groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np


def design_effects(table_NH: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """[N, N]: of the correlation of every two rows, 1 + (m - 1) a b for groups of m values (Dutilleul 1993).

    a and b are the shares of the rows' variances that lie between groups. 1 without groups, or if all values are in
    one group, or each in its own: then nothing tells how alike values of a group are.
    """
    count, heads = table_NH.shape
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if not 1 < len(numbers) < heads:
        return np.ones((count, count))
    member_GH = np.arange(len(numbers))[:, None] == [numbers[group] for group in groups]
    sizes_G = member_GH.sum(1)
    usual = float((sizes_G**2).sum() / heads)  # size of the group of a value, on average over values
    shares_N = _shares_between(table_NH, member_GH.astype(np.float64), sizes_G)
    return np.asarray(1 + (usual - 1) * np.outer(shares_N, shares_N))


def _shares_between(table_NH: np.ndarray, member_GH: np.ndarray, sizes_G: np.ndarray) -> np.ndarray:
    """[N]: intraclass correlations of the rows by analysis of variance, for groups of any sizes; no less than 0."""
    heads, groups = table_NH.shape[1], len(sizes_G)
    centred_NH = table_NH - table_NH.mean(-1, keepdims=True)
    between_N = (np.square(centred_NH @ member_GH.T) / sizes_G).sum(-1)
    within_N = (np.square(centred_NH).sum(-1) - between_N) / (heads - groups)
    size = (heads - (sizes_G**2).sum() / heads) / (groups - 1)
    between_N = between_N / (groups - 1)
    return np.asarray(np.clip((between_N - within_N) / (between_N + (size - 1) * within_N), 0, 1))
