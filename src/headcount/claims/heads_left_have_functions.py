"""V13: with a third of the heads remaining, all of them have a function (Voita et al. 2019, section 6.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, missing, pooled
from headcount.claims.pruned import Pruning, of_kind, prunings, role_names, unsettled
from headcount.claims.shares import pooled_share, share_interval
from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES
from headcount.record.results.tradeoff import Point
from headcount.statistics import Interval

ALMOST_ALL = 0.9
THIRD = 17 / 48  # the paper's model


def _nearest(pruning: Pruning) -> list[Point]:
    """The models, one for each seed, whose share of heads is nearest to the paper's."""
    with_roles = [model for model in pruning.models if model.roles]
    if not with_roles:
        return []
    keep = min((model.keep for model in with_roles), key=lambda keep: abs(keep / pruning.budgeted - THIRD))
    return [model for model in with_roles if model.keep == keep]


def _share(pruning: Pruning, model: Point) -> Interval:
    heads, roles = of_kind(model.heads, pruning.kind), role_names(model.roles or {})
    having = sum(bool(roles.get(str(head), frozenset()) & set(PAPER_ROLES)) for head in heads)
    return share_interval(having, len(heads))


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [
        (pruning, nearest)
        for model in models
        for pruning in prunings(model, all_kinds=False)
        if (nearest := _nearest(pruning))
    ]
    if not studied:
        return missing("no trade-off with gates on heads of one kind whose roles were looked at")
    interval = pooled_share([pooled([_share(pruning, model) for model in nearest]) for pruning, nearest in studied])
    sizes = ", ".join(dict.fromkeys(f"{nearest[0].keep} of {pruning.budgeted}" for pruning, nearest in studied))
    detail = f"{sizes} heads left; delimiter, same-token and induction heads do not count"
    return Measurement(
        interval, above(interval, ALMOST_ALL), len(studied), sum(len(nearest) for _, nearest in studied),
        detail + unsettled([pruning for pruning, _ in studied]),
    )  # fmt: skip


CLAIM = Claim(
    number="V13",
    sentence="With about a third of the encoder's heads left, all that are left have a function of the paper.",
    where="Figure 8 as we read it; the text (section 6.2.2) says that the heads left have all functions",
    statistic="share of the heads left with a positional, syntactic or rare-token role; above .9",
    command="headcount study tradeoff MODEL --keep encoder=8 --ways l0 --task TASK --data DATA --out DIR",
    part="tradeoff",
    changed_by="more heads, seeds or models: a few heads leave a wide exact interval",
    measure=_measure,
)
