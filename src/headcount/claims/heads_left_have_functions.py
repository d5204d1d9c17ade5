"""V13: with a third of the heads remaining, all of them have a function (Voita et al. 2019, section 6.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, missing
from headcount.claims.pruned import Pruning, prunings, role_names, unless_refuted, unsettled, with_known_role
from headcount.claims.shares import share_of_heads
from headcount.claims.steps import CLOSE
from headcount.claims.studied import StudiedModel
from headcount.heads import PAPER_ROLES
from headcount.record.results.tradeoff import Point
from headcount.statistics import Interval

ALMOST_ALL = 0.9
THIRD = 17 / 48  # the paper's model


def _nearest(pruning: Pruning) -> list[Point]:
    """The models, one for each seed, whose share of heads is nearest to the paper's; none if no share is near it."""
    with_roles = [model for model in pruning.models if with_known_role(model.heads, pruning, model.roles or ())]
    if not with_roles:
        return []
    distances = {model.keep: abs(model.keep / pruning.budgeted - THIRD) for model in with_roles}
    keep = min(distances, key=lambda keep: distances[keep])
    return [model for model in with_roles if model.keep == keep and distances[keep] <= CLOSE + 1e-9]


def _functions(pruning: Pruning, model: Point, *, unsure: bool = False) -> dict[str, bool]:
    """Which heads that are left have a function. unsure: or may have one."""
    roles = role_names(model.roles or {})
    heads = with_known_role(model.heads, pruning, roles)
    having = {str(head) for head in heads if roles.get(str(head), frozenset()) & set(PAPER_ROLES)}
    if unsure:
        having |= {str(head) for head in heads} & set(model.unsure or ())
    return {str(head): str(head) in having for head in heads}


def _over_models(studied: Sequence[tuple[Pruning, list[Point]]], *, unsure: bool = False) -> Interval:
    return share_of_heads(
        [[_functions(pruning, model, unsure=unsure) for model in nearest] for pruning, nearest in studied]
    )


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [
        (pruning, nearest)
        for model in models
        for pruning in prunings(model, all_kinds=False)
        if (nearest := _nearest(pruning))
    ]
    if not studied:
        reason = "no trade-off with gates on heads of one kind whose roles were looked at"
        return missing(f"{reason}, with a budget near a third of them")
    # A role is a verdict: a head whose role too few sentences show is no head without one.
    certain, possible = _over_models(studied), _over_models(studied, unsure=True)
    interval = certain._replace(high=max(certain.high, possible.high))
    holds = above(interval, ALMOST_ALL)
    if holds is False and any(model.unsure is None for _, nearest in studied for model in nearest):
        holds = None
    holds, note = unless_refuted(holds, (pruning.trees for pruning, _ in studied))
    sizes = ", ".join(dict.fromkeys(f"{nearest[0].keep} of {pruning.budgeted}" for pruning, nearest in studied))
    detail = f"{sizes} heads left; delimiter, same-token and induction heads do not count"
    return Measurement(
        interval, holds, len(studied), sum(len(nearest) for _, nearest in studied),
        detail + unsettled([pruning for pruning, _ in studied]) + note,
    )  # fmt: skip


CLAIM = Claim(
    number="V13",
    sentence="With about a third of the encoder's heads left, all that are left have a function of the paper.",
    where="Figure 8 as we read it; the text (section 6.2.2) says that the heads left have all functions",
    statistic="share of the heads left with a positional, syntactic or rare-token role; above .9",
    part="tradeoff",
    changed_by="more sentences, which make roles certain; more heads, seeds or models: a few heads leave it wide",
    measure=_measure,
    bounds=(0.0, 1.0),
)
