"""same-token: the head attends to another occurrence of the same token."""

from __future__ import annotations

from headcount.head_roles.role import TargetRole, Trials, asking
from headcount.head_roles.sight import View


class SameToken(TargetRole):
    """The maximum of a token that occurs again is one of its other occurrences."""

    name = "same-token"
    fixed_labels = ("another occurrence",)

    def trials(self, view: View) -> Trials:
        same_BQK = view.queries.ids_BT[:, :, None] == view.keys.ids_BT[:, None]
        return asking(view, [same_BQK & (view.offsets_QK != 0)])


ROLE = SameToken()
