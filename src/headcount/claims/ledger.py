"""Ledger: every claim decided on the records of some models."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, ordered
from headcount.claims.studied import StudiedModel
from headcount.record.results.ledger import Ledger, Verdict
from headcount.record.results.tradeoff import Tradeoff


def ledger(models: Sequence[StudiedModel], papers: Sequence[str] = ("voita2019", "michel2019")) -> Ledger:
    """The claims of these papers in the order of their numbers."""
    seeds = sum(len({point.seed for row in model.every(Tradeoff) for point in row.points}) for model in models)
    verdicts = tuple(decide(claim, models) for claim in ordered(papers))
    return Ledger(verdicts, tuple(model.name for model in models), seeds)


def decide(claim: Claim, models: Sequence[StudiedModel]) -> Verdict:
    """Decide one claim. If a record is missing, it is open, and the verdict names the command for it."""
    measurement = claim.measure(models)
    reasons = [model.missing[claim.part] for model in models if claim.part in model.missing]
    detail = measurement.detail if measurement.models else f"{(*reasons, measurement.detail)[0]}; {claim.command}"
    return Verdict(
        number=claim.number, paper=claim.paper, claim=claim.sentence, where=claim.where, statistic=claim.statistic,
        value=measurement.interval.value, low=measurement.interval.low, high=measurement.interval.high,
        models=measurement.models, runs=measurement.runs, holds=measurement.holds, detail=detail,
        changed_by=claim.changed_by,
    )  # fmt: skip
