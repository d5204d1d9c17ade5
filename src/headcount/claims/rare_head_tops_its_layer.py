"""V4: the most relevant head of the first layer attends to rare tokens (Voita et al. 2019, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.alone import by_role_alone
from headcount.claims.claim import Claim, Measurement, above, difference, missing, pooled, widened
from headcount.claims.studied import StudiedModel
from headcount.heads import Head
from headcount.plural import plural
from headcount.record.results.roles import RareHead, RolesFound
from headcount.record.results.score import Scoring
from headcount.statistics import Interval


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    with_both = [
        (roles.paper.rare, relevance)
        for model in models
        if (roles := model.first(RolesFound)) and roles.paper.rare and (relevance := model.scores("relevance"))
    ]
    if not with_both:
        return missing("it needs a record of relevance, and one of roles on sentences with rare tokens")
    playing = [(rare, relevance) for rare, relevance in with_both if rare.holds and _rivals(rare, relevance)]
    if not playing:
        return missing(
            f"no head of the first layer looks at rare tokens beyond doubt in {plural(len(with_both), 'model')}"
        )
    leads = [_lead(rare, relevance) for rare, relevance in playing]
    interval = pooled(leads, shared=True)
    heads = ", ".join(f"{rare.head} ({rare.two_rarest:.0%} at the two rarest)" for rare, _ in playing)
    unpaired = "" if all(relevance.leads for _, relevance in playing) else "; not paired by example"
    alone = by_role_alone(models, "rare")
    detail = f"{heads}; of {len(with_both)} models{unpaired}{alone}"
    return Measurement(interval, above(interval, 0.0), len(leads), 1, detail)


def _lead(rare: RareHead, relevance: Scoring) -> Interval:
    """Lead over the most relevant other head of its layer; paired by example if the record has it.

    The most relevant of several is so by chance too: the upper end is corrected for their number.
    """
    rivals = _rivals(rare, relevance)
    if relevance.leads and rare.head in relevance.leads:
        lead = relevance.leads[rare.head]
    else:
        best = max(rivals, key=lambda name: relevance.scores[name])
        lead = difference(_relevance(relevance, rare.head), _relevance(relevance, best))
    examples = relevance.conservation.examples if relevance.conservation else 3
    return Interval(lead.value, lead.low, widened(lead, len(rivals), max(examples, 2)).high)


def _rivals(rare: RareHead, relevance: Scoring) -> list[str]:
    """The other heads of its layer."""
    site = Head.parse(rare.head).site
    return [name for name in relevance.scores if Head.parse(name).site == site and name != rare.head]


def _relevance(scoring: Scoring, head: str) -> Interval:
    low, high = ((ends or {}).get(head, float("nan")) for ends in (scoring.low, scoring.high))
    return Interval(scoring.scores[head], low, high)


CLAIM = Claim(
    number="V4",
    sentence="The head of the first layer that looks at rare tokens is the most relevant one of its layer.",
    where="section 5.3",
    statistic="relevance of that head less that of the most relevant other head of its layer; above 0",
    part="roles",
    also=("relevance",),
    changed_by="a model without such a head, or whose first layer has a more relevant one",
    measure=_measure,
    bounds=(-1.0, 1.0),
)
