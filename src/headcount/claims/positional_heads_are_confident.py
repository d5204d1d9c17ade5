"""V3: every positional head has a confidence above .8 (Voita et al. 2019, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, all_above, missing
from headcount.claims.studied import StudiedModel
from headcount.record.results.roles import RolesFound

CONFIDENT = 0.8


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [roles for model in models if (roles := model.first(RolesFound)) is not None]
    if not studied:
        return missing("no record of roles")
    confidences = [roles.confidence[head] for roles in studied for head in roles.paper.positional.labels]
    if not confidences:
        return missing(f"no positional head in {len(studied)} model{'s' if len(studied) > 1 else ''}")
    least = min(confidences, key=lambda interval: interval.value)
    exceeding = sum(interval.value > CONFIDENT for interval in confidences)
    detail = f"{exceeding} of {len(confidences)} positional heads are above {CONFIDENT:g}"
    return Measurement(least, all_above(confidences, CONFIDENT), len(studied), 1, detail)


CLAIM = Claim(
    number="V3",
    sentence="Every positional head has a confidence above .8.",
    where="section 5.1",
    statistic="lowest confidence of the encoder's positional heads; above .8, with the interval of each of them",
    command="headcount roles MODEL --data DATA --out DIR",
    part="roles",
    changed_by="one positional head below .8; more sentences narrow each interval",
    measure=_measure,
)
