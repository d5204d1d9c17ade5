"""same-token: the head attends to another occurrence of the same token."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from headcount.head_roles.reading import Reading
from headcount.head_roles.role import Trials, asking, looking
from headcount.head_roles.sight import Sight, View


class SameToken:
    """The maximum of a token that occurs again is one of its other occurrences."""

    kinds = ("self",)

    def labels(self, reading: Reading) -> Sequence[str]:
        return ["another occurrence"]

    def trials(self, view: View) -> Trials:
        same_BQK = view.queries.ids_BT[:, :, None] == view.keys.ids_BT[:, None]
        return asking(view, [same_BQK & (view.offsets_QK != 0)])

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        return looking(trials, sight)

    def threshold(self, label: str, baseline: float, reading: Reading) -> float:
        return reading.threshold("same-token")


ROLE = SameToken()
