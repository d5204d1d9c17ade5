"""delimiter: the head attends to a token that is always present: a special token, the first one, or punctuation."""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.head_roles.role import TargetRole, Trials, asking, looking
from headcount.head_roles.sight import Sight, View
from headcount.probes.peaks import SAME


class Delimiter(TargetRole):
    """The maximum is a special token before or after the text; or, without these, the first token or punctuation."""

    name = "delimiter"
    kinds = ("self", "cross")
    fixed_labels = ("start", "end", "first", "punctuation")

    def trials(self, view: View) -> Trials:
        tokens_BK, places_K = view.keys.tokens_BT, torch.arange(view.keys.ids_BT.shape[1])
        first_B = tokens_BK.int().argmax(-1)
        first_BK = tokens_BK & (places_K == first_B[:, None])
        own_BQ = view.offsets_QK == 0 if view.kind == "self" else torch.zeros_like(view.offsets_QK, dtype=torch.bool)
        not_itself_BQ = ~(own_BQ & first_BK[:, None]).any(-1)  # the first token attending to itself is no evidence
        among = asking(view, [first_BK, view.batch.punctuation_BT], [not_itself_BQ, torch.ones_like(not_itself_BQ)])
        before_BS, after_BS = (part & view.specials[1] for part in _sides(view, first_B))
        trials, chance, sees = [], [], []
        for here_BS in (before_BS, after_BS):
            seen_BQS = here_BS[:, None] & view.seen_specials_BQS
            counted_BQ = view.queries.tokens_BT & (view.choices_BQ > 0) & seen_BQS.any(-1)
            trials.append(counted_BQ.sum(-1))
            every_BQ = view.choices_BQ + view.seen_specials_BQS.sum(-1)
            chance.append((counted_BQ * seen_BQS.sum(-1) / every_BQ.clamp_min(1)).sum(-1))
            sees.append((here_BS, counted_BQ))
        return Trials(
            torch.cat([torch.stack(trials, -1), among.trials_BL], -1),
            torch.cat([torch.stack(chance, -1), among.chance_BL], -1),
            (sees, among),
        )

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        sees, among = trials.targets
        (before_BS, asked_BQ), (after_BS, asked_too_BQ) = sees
        before_BHQ, after_BHQ = (
            (sight.special_BHQS * here_BS[:, None, None]).amax(-1) for here_BS in (before_BS, after_BS)
        )
        on_start_BHQ = _above(before_BHQ, torch.maximum(after_BHQ, sight.weight_BHQ)) & asked_BQ[:, None]
        on_end_BHQ = _above(after_BHQ, torch.maximum(before_BHQ, sight.weight_BHQ)) & asked_too_BQ[:, None]
        on_specials = torch.stack([on_start_BHQ.sum(-1), on_end_BHQ.sum(-1)], -1)
        return torch.cat([on_specials, looking(among, sight)], -1)


def _sides(view: View, first_B: Tensor) -> tuple[Tensor, Tensor]:
    """Special tokens before the first token, and after it."""
    before_BS = view.specials[0] < first_B[:, None]
    return before_BS, ~before_BS


def _above(left: Tensor, other: Tensor) -> Tensor:
    return other < left * (1 - SAME)


ROLE = Delimiter()
