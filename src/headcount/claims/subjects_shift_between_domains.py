"""Claim V7: heads track subjects better in domains with more varied persons (Voita et al. 2019, section 5.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import log

from headcount.claims.claim import Claim, Measurement, above, averaged, difference, missing, pooled
from headcount.claims.studied import StudiedModel
from headcount.claims.syntactic_heads_beat_offsets import paper_relations
from headcount.record.results.roles import RolesFound
from headcount.statistics import Interval, share_interval

_VARIETY = 0.05  # minimum difference in entropy between two domains, in nats


def _variety(roles: RolesFound) -> float:
    """Return the entropy of the grammatical person of subjects, in nats."""
    total = sum(roles.persons.values())
    return -sum(count / total * log(count / total) for count in roles.persons.values() if count)


def _subject_lead(roles: RolesFound) -> Interval | None:
    """Return the accuracy of the best head for verb -> subject minus that of the best offset.

    The offset was measured too, on the same sentences: its variance is added to that of the head as if both were
    independent. Without it, good heads that agree over seeds decided 13 to 24% of nulls.
    """
    row = next((row for row in paper_relations(roles) if row.label == "nsubj v->s"), None)
    if row is None:
        return None
    offset = share_interval(row.baseline * row.trials, row.trials)
    return difference(Interval(row.value, row.low, row.high), offset)


@dataclass(frozen=True)
class _Domain:
    """The models of one domain and one target language."""

    name: str
    varieties: list[float]
    leads: list[Interval]

    @property
    def variety(self) -> float:
        return sum(self.varieties) / len(self.varieties)


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    domains: dict[tuple[str, str], _Domain] = {}
    for model in models:
        roles = model.first(RolesFound)
        if roles and any(roles.persons.values()) and (lead := _subject_lead(roles)) is not None:
            domain = domains.setdefault((model.language, model.domain), _Domain(model.domain, [], []))
            domain.varieties.append(_variety(roles))
            domain.leads.append(lead)
    compared = [
        (left, right)
        for left, right in combinations(domains, 2)
        if left[0] == right[0] and abs(domains[left].variety - domains[right].variety) > _VARIETY
    ]
    pairs = [sorted((domains[left], domains[right]), key=lambda domain: -domain.variety) for left, right in compared]
    if not pairs:
        return missing("it needs studies of models of two domains whose subjects are known to differ in person")
    # Average over models first: differences of pairs that share a model are not independent. Nor are pairs that share
    # a domain: their ends are averaged.
    gaps = [difference(_over_models(varied), _over_models(uniform)) for varied, uniform in pairs]
    interval = averaged(gaps)
    studied = sum(len(domains[group].leads) for group in set(chain.from_iterable(compared)))
    fewer = min(len(domain.leads) for pair in pairs for domain in pair)
    holds = above(interval, 0.0) if fewer > 1 else None  # one model of a domain differs by its seed too
    return Measurement(interval, holds, studied, fewer, f"more varied: {pairs[0][0].name}")


def _over_models(domain: _Domain) -> Interval:
    """The mean lead of its models, which share the sentences."""
    return pooled(domain.leads, shared=True)


CLAIM = Claim(
    number="V7",
    sentence="Where subjects vary more in person, a head finds the subject of a verb better.",
    where="section 5.2.2",
    statistic=(
        "lead of the best head for nsubj v->s over the best offset, in the domain with more varied persons less in "
        "the other; above 0"
    ),
    part="roles",
    data="grammar:rich:dialogue",
    changed_by="several models of each domain: one model of a domain leaves it open, as two differ by their seeds too",
    measure=_measure,
    bounds=(-2.0, 2.0),
    compares_data=True,
)
