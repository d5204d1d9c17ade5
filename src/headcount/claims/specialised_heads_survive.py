"""V8: specialised heads are the last to be pruned (Voita et al. 2019, section 6.2).

Null hypothesis: roles are permuted among the heads of each layer of a kind, once for all pruned models of a run, so
that budgets that share heads do not count as independent. Shapes: R rounds, H heads, M pruned models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.pruned import Pruning, prunings, seeds_of, unless_refuted, unsettled, with_known_role
from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES
from headcount.plural import plural
from headcount.statistics import Interval, RatioSums, half_width

_ROUNDS = 5000


class Survival(NamedTuple):
    """Share of marked heads that masks keep, and the same with marks permuted within sites, the layers of a kind."""

    share: float
    expected: float
    drawn_R: np.ndarray
    of_layers: RatioSums  # kept marked heads above chance, to marked heads of layers with both

    @property
    def excess(self) -> Interval:
        """Over chance; its interval has the width that chance has."""
        low, high = np.percentile(self.drawn_R, [2.5, 97.5])
        value = self.share - self.expected
        return Interval(value, value - (high - self.expected), value + (self.expected - low))

    @property
    def excess_of_one_model(self) -> Interval:
        """No narrower than a t-interval over three layers or more. Several models differ by as much.

        Permutations take all heads as equally spread: with two of 8 or 12 heads of a layer marked, whose gates vary
        three times as much as the others, 10 to 14% of verdicts on five seeds of one model were wrong.
        """
        half = float(half_width(self._error, self.of_layers.count)) if self._has_layers else 0.0
        excess = self.excess
        return excess._replace(low=min(excess.low, excess.value - half), high=max(excess.high, excess.value + half))

    @property
    def p(self) -> float:
        """One-sided, of one model: by permutation, and no less than by a t-test over layers."""
        from scipy.stats import t

        permuted = float((1 + (self.drawn_R >= self.share - 1e-12).sum()) / (len(self.drawn_R) + 1))
        if not self._has_layers or not self._error > 0:
            return permuted
        return max(permuted, float(t.sf((self.share - self.expected) / self._error, self.of_layers.count - 1)))

    @property
    def _has_layers(self) -> bool:
        return bool(self.of_layers.count > 2)

    @property
    def _error(self) -> np.ndarray:
        """Standard error of the excess over all marked heads; layers in which all are marked add nothing to it."""
        return np.asarray(self.of_layers.error(self.of_layers.count) * self.of_layers.b)


def survival(kept_MH: np.ndarray, marked_H: np.ndarray, site_H: np.ndarray, *, seed: int = 0) -> Survival:
    """How many marked heads the masks keep, on average."""
    kept_H = kept_MH.mean(0)
    random, dealt_RH = np.random.default_rng(seed), np.empty((_ROUNDS, len(marked_H)))
    for site in np.unique(site_H):
        inside = site_H == site
        dealt_RH[:, inside] = random.permuted(np.tile(marked_H[inside], (_ROUNDS, 1)), axis=1)
    total = marked_H.sum()
    layers = [site_H == site for site in np.unique(site_H)]
    expected = sum(kept_H[inside].mean() * marked_H[inside].sum() for inside in layers)
    mixed = [inside for inside in layers if 0 < marked_H[inside].sum() < inside.sum()]
    above = np.array([(kept_H[inside] - kept_H[inside].mean()) @ marked_H[inside] for inside in mixed])
    of_layers = RatioSums.of(above / total, np.array([marked_H[inside].sum() / total for inside in mixed]))
    return Survival(float(kept_H @ marked_H / total), float(expected / total), dealt_RH @ kept_H / total, of_layers)


def _survival(pruning: Pruning, marked: set[str]) -> Survival | None:
    heads = with_known_role(pruning.heads, pruning, pruning.roles)
    marked_H = np.array([str(head) in marked for head in heads], dtype=float)
    if not 0 < marked_H.sum() < len(heads):
        return None
    kept_MH = np.array([[str(head) in model.heads for head in heads] for model in pruning.models], dtype=float)
    return survival(kept_MH, marked_H, np.array([f"{head.kind}.{head.layer}" for head in heads]))


def _by_role(run_prunings: Sequence[Pruning]) -> str:
    parts = []
    for role in PAPER_ROLES:
        rows = [
            row
            for pruning in run_prunings
            if (row := _survival(pruning, {head for head, names in pruning.roles.items() if role in names}))
        ]
        if rows:
            shares = [float(np.mean([getattr(row, name) for row in rows])) for name in ("share", "expected")]
            parts.append(f"{role} {shares[0]:.0%} kept, {shares[1]:.0%} by chance")
    return ", ".join(parts)


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    by_model = [pruning for model in models for pruning in prunings(model, all_kinds=False) if pruning.heads]
    if not by_model:
        return missing("no trade-off with gates on heads of one kind")
    rows = [(pruning, row) for pruning in by_model if (row := _survival(pruning, pruning.marked)) is not None]
    if not rows:
        return missing("no model has heads both with and without a role of the paper")
    interval = pooled([row.excess if len(rows) > 1 else row.excess_of_one_model for _, row in rows])
    pruned = [model for pruning, _ in rows for model in pruning.models]
    p = f"; p = {rows[0][1].p:.3g}" if len(rows) == 1 else ""
    detail = (
        f"{_by_role([pruning for pruning, _ in rows])}; {plural(len(pruned), 'pruned model')}{p}"
        f"{unsettled([pruning for pruning, _ in rows])}"
    )
    seeds = sum(map(seeds_of, (pruning for pruning, _ in rows)))
    holds, note = unless_refuted(above(interval, 0.0), (pruning.trees for pruning, _ in rows))
    return Measurement(interval, holds, len(rows), seeds, detail + note)


CLAIM = Claim(
    number="V8",
    sentence="Specialised heads are the last to be pruned.",
    where="abstract; section 6.2.2, Figure 8",
    statistic=(
        "share of the heads with a role of the paper that gates keep, less the share that a random choice of as many "
        "heads in each layer keeps; mean over budgets and seeds; above 0"
    ),
    part="tradeoff",
    changed_by="more models and seeds; gates that have settled",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
