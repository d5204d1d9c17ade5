"""Alone: what heads give of their worth if they do nothing but their role, beside the claims on these roles."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.studied import StudiedModel
from headcount.record.results.roles import RolesFound

_HALF = 0.5


def by_role_alone(models: Sequence[StudiedModel], role: str) -> str:
    """What this role alone gives, of the encoder's heads that are worth something for certain; empty without any."""
    by_model = [(roles.paper.kind, roles.played) for model in models if (roles := model.first(RolesFound))]
    shares = [
        (head, share)
        for kind, played in by_model
        if played is not None
        for head, share in played.certain.items()
        if played.by_head[head].role == role and head.startswith(f"{kind}.")
    ]
    if not shares:
        return ""
    if len(shares) == 1:
        ((head, share),) = shares
        left = f"{share.value:.0%} (95% {share.low:.0%} to {share.high:.0%})"
        return f"; if {head} does nothing but its role, {left} of its worth is left"
    half_left = sum(share.low >= _HALF for _, share in shares)
    return (
        f"; if {role} heads do nothing but their role, at least half of their worth is left for {half_left} of "
        f"{len(shares)}, by the whole interval"
    )
