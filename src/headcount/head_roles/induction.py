"""induction: the head attends to the token after an earlier occurrence of the query (Elhage et al. 2021)."""

from __future__ import annotations

from headcount.head_roles.role import TargetRole, Trials, asking
from headcount.head_roles.sight import View


class Induction(TargetRole):
    """The maximum of a token that occurred earlier is the token after one of its earlier occurrences."""

    name = "induction"
    fixed_labels = ("after the last time",)

    def trials(self, view: View) -> Trials:
        before_BK = view.keys.ids_BT.roll(1, dims=1)
        there_BK = view.keys.tokens_BT.roll(1, dims=1)
        there_BK[:, 0] = False
        again_BQK = (view.queries.ids_BT[:, :, None] == before_BK[:, None]) & there_BK[:, None]
        return asking(view, [again_BQK & (view.offsets_QK < 0)])


ROLE = Induction()
