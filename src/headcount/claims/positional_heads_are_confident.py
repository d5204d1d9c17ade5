"""V3: every positional head has a confidence above .8 (Voita et al. 2019, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.alone import by_role_alone
from headcount.claims.claim import Claim, Measurement, above, least, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.plural import plural
from headcount.record.results.roles import RolesFound

CONFIDENT = 0.8


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    studied = [roles for model in models if (roles := model.first(RolesFound)) is not None]
    if not studied:
        return missing("no record of roles")
    by_model = [[roles.confidence[head] for head in roles.paper.positional.labels] for roles in studied]
    by_model = [confidences for confidences in by_model if confidences]
    if not by_model:
        return missing(f"no positional head in {plural(len(studied), 'model')}")
    interval = pooled([least([[head] for head in confidences]) for confidences in by_model], shared=True)
    values = [head.value for confidences in by_model for head in confidences]
    without = f"; none in {len(studied) - len(by_model)} more models" if len(by_model) < len(studied) else ""
    detail = (
        f"{sum(value > CONFIDENT for value in values)} of {len(values)} positional heads are above {CONFIDENT:g}, the "
        f"lowest is at {min(values):.2f}{without}{by_role_alone(models, 'positional')}"
    )
    # One head that is certainly below refutes "every" for its model, whatever the mean over models is.
    exception = any(head.high < CONFIDENT for confidences in by_model for head in confidences)
    holds = above(interval, CONFIDENT)
    return Measurement(interval, None if holds and exception else holds, len(by_model), 1, detail)


CLAIM = Claim(
    number="V3",
    sentence="Every positional head has a confidence above .8.",
    where="section 5.1",
    statistic=(
        "lowest confidence of a positional head of the encoder, mean over models; above .8, and no head certainly below"
    ),
    part="roles",
    changed_by="more models: the interval is over them; one model alone has that of its lowest head over sentences",
    measure=_measure,
    bounds=(0.0, 1.0),
)
