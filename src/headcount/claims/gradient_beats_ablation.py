"""M6: the gradient order loses less than the order of single ablations (Michel et al. 2019, section 4.2, Figure 3).

Null hypothesis: neither score says anything, so that both orders are random ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headcount.claims.claim import Claim, Measurement, above, deviation
from headcount.claims.leads import beyond_chance, decided_by_leads, leading, variance_of_order
from headcount.claims.steps import ordered_by
from headcount.claims.studied import StudiedModel
from headcount.record.results.curves import Curves, Lead
from headcount.statistics import Interval

_PAIR = ("gradient", "ablation")


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    measurement = decided_by_leads(models, [_PAIR], "no curves by both orders, gradient and ablation")
    rows = leading(models, _PAIR)
    if len(rows) == 1:
        measurement = _of_one_model(measurement, *rows[0])
    doubt = next(filter(None, (_ties(curves, lead) for curves, lead in rows)), "")
    return replace(measurement, holds=None, detail=f"{measurement.detail}; {doubt}") if doubt else measurement


def _of_one_model(measurement: Measurement, curves: Curves, lead: Lead) -> Measurement:
    """Both orders are single ones, and two random ones differ by chance; open if random orders do not say by how much.

    Several models have several such orders.
    """
    of_order = variance_of_order(curves, "gradient")
    if of_order is None:
        detail = f"{measurement.detail}; one model needs two random orders, which say how much orders differ by chance"
        return replace(measurement, holds=None, detail=detail)
    examples = deviation(Interval(lead.value, lead.low, lead.high)) ** 2
    interval = beyond_chance(curves, lead, examples, 2 * of_order)
    return replace(measurement, interval=interval, holds=above(interval, 0.0))


def _ties(curves: Curves, lead: Lead) -> str:
    """Why the heads that go are not those with the lowest scores, but chosen by chance among equal ones; else empty."""
    orders = [curve for order in _PAIR if (curve := ordered_by(curves, order))]
    points = [point for curve in orders for point in curve.points if lead.start <= point.share <= lead.end]
    if any(point.tied is None for point in points):
        return "the record does not say whether heads have equal scores: measure the curves again"
    if any(point.tied for point in points):
        return "chance chooses among heads with equal scores, which a metric without ties (loss) would not have"
    return ""


CLAIM = Claim(
    number="M6",
    sentence="Removing heads by gradient score is better than by what each costs alone.",
    where="section 4.2, Figure 3",
    statistic=(
        "metric by gradient order less that by single ablations on the same examples, mean of the steps from 15 to "
        "65%; above 0"
    ),
    part="curves",
    changed_by=(
        "more models; of one model, the interval has what two random orders differ by; a metric without ties: heads "
        "with equal scores go in random order, and leave it open"
    ),
    measure=_measure,
)
