"""current-token: the head attends to the token itself; `same-token` is another occurrence of it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from headcount.head_roles.reading import Reading
from headcount.head_roles.role import Trials, asking, looking
from headcount.head_roles.sight import Sight, View


class CurrentToken:
    """At least 90% of queries have their maximum on themselves; there are no trials if the diagonal is left out."""

    kinds = ("self",)

    def labels(self, reading: Reading) -> Sequence[str]:
        return ["itself"]

    def trials(self, view: View) -> Trials:
        return asking(view, [(view.offsets_QK == 0).expand_as(view.seen_BQK)])

    def hits(self, trials: Trials, sight: Sight) -> Tensor:
        return looking(trials, sight)

    def threshold(self, label: str, baseline: float, reading: Reading) -> float:
        return reading.threshold("current-token")


ROLE = CurrentToken()
