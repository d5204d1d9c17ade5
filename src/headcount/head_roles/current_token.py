"""current-token: the head attends to the token itself; `same-token` is another occurrence of it."""

from __future__ import annotations

from headcount.head_roles.role import TargetRole, Trials, asking
from headcount.head_roles.sight import View


class CurrentToken(TargetRole):
    """At least 90% of queries have their maximum on themselves; there are no trials if the diagonal is left out."""

    name = "current-token"
    fixed_labels = ("itself",)

    def trials(self, view: View) -> Trials:
        return asking(view, [(view.offsets_QK == 0).expand_as(view.seen_BQK)])


ROLE = CurrentToken()
