"""alignment: a cross-attention head moves through the source as the target is generated.

diagonal   the maximum is within one token of the source position that corresponds proportionally to the target step
monotone   of every two steps, the later one attends further right (+1) or further left (-1): Kendall's tau without
           correction for ties, so that a head that never moves has 0, like one that moves at random
Shapes: B batch, H heads of a site, Q queries, K keys.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.head_roles.role import TargetRole, Trials, asking, looking
from headcount.head_roles.sight import Sight, View


class Alignment(TargetRole):
    """Attention along the diagonal, or at least monotone."""

    name = "alignment"
    kinds = ("cross",)
    fixed_labels = ("diagonal", "monotone")
    signed = ("monotone",)  # from -1, always backward, to 1

    def trials(self, view: View) -> Trials:
        near = asking(view, [_near(view)])
        steps_B = view.asking_BQ.sum(-1)
        couples_B = steps_B * (steps_B - 1) // 2
        trials_BL = torch.stack([near.trials_BL[:, 0], couples_B], -1)
        chance_BL = torch.stack([near.chance_BL[:, 0], torch.zeros_like(near.chance_BL[:, 0])], -1)
        return Trials(trials_BL, chance_BL, near)

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        place_BHQ, found_BHQ = sight.place_BHQ, sight.found_BHQ
        later_QQ = torch.ones(place_BHQ.shape[-1], place_BHQ.shape[-1]).triu(1)
        both_BHQQ = found_BHQ[..., :, None] & found_BHQ[..., None, :]
        moves_BHQQ = torch.sign(place_BHQ[..., None, :] - place_BHQ[..., :, None]) * both_BHQQ
        forward_BH = (moves_BHQQ * later_QQ).sum((-1, -2))
        return torch.stack([looking(trials.targets, sight)[..., 0].float(), forward_BH.float()], -1)


def _near(view: View) -> Tensor:
    """[B, Q, K]: keys within one token of the proportional position."""
    step_BQ = view.queries.tokens_BT.cumsum(-1) - 1
    token_BK = view.keys.tokens_BT.cumsum(-1) - 1
    last_step_B, last_token_B = (side.tokens_BT.sum(-1) - 1 for side in (view.queries, view.keys))
    last_step_B = last_step_B.clamp_min(1)
    # |token - step * last token / last step| <= 1, in whole numbers: rounding must not decide.
    apart_BQK = token_BK[:, None] * last_step_B[:, None, None] - (step_BQ * last_token_B[:, None])[..., None]
    return apart_BQK.abs() <= last_step_B[:, None, None]


ROLE = Alignment()
