"""rare: the head attends to the least frequent tokens of a sentence (Voita et al. 2019, section 5.3)."""

from __future__ import annotations

from torch import Tensor

from headcount.errors import UsageError
from headcount.head_roles.role import TargetRole, Trials, asking
from headcount.head_roles.sight import View


class Rare(TargetRole):
    """The maximum is the rarest token, or one of the two rarest, in sentences that have a rare token."""

    name = "rare"
    fixed_labels = ("rarest", "two rarest")

    def trials(self, view: View) -> Trials | None:
        if view.frequencies is None or view.reading.common is None:
            return None
        return asking(view, view.batch.rarest(view.frequencies, view.reading.common))

    def wanted(self, view: View, label: str) -> Tensor:
        if view.frequencies is None or view.reading.common is None:
            raise UsageError("The rare role needs token frequencies: give frequencies=.")
        index = self.fixed_labels.index(label)
        target_BK = view.batch.rarest(view.frequencies, view.reading.common)[index]
        return view.seen_BQK & view.queries.tokens_BT[..., None] & target_BK[:, None]


ROLE = Rare()
