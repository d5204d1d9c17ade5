"""Ledger: every claim decided on the records of some models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from headcount.claims.claim import Claim, Measurement, missing, ordered
from headcount.claims.studied import StudiedModel, last_of_each_training
from headcount.plural import plural
from headcount.record.results.ledger import Ledger, Verdict
from headcount.record.results.tradeoff import Tradeoff

_APART = "no shape has both: models of the languages or domains that it compares differ in shape, task or metric"


def ledger(models: Sequence[StudiedModel], papers: Sequence[str] = ("voita2019", "michel2019")) -> Ledger:
    """The claims of these papers in the order of their numbers."""
    counted = last_of_each_training(models)
    note = "; of several epochs of a training the last counts" if len(counted) < len(models) else ""
    verdicts = [decide(claim, counted) for claim in ordered(papers)]
    return Ledger(
        tuple(replace(verdict, detail=verdict.detail + note) if verdict.models else verdict for verdict in verdicts),
        tuple(model.name for model in counted),
        sum(len(_pruning_seeds(model)) for model in counted),
    )


def _of_most_models(claim: Claim, models: Sequence[StudiedModel]) -> Measurement:
    """The measurement of the largest group of models that are alike; what the other groups say is a detail.

    Open if another group is as large and has another verdict: which one comes first does not decide.
    Models of one shape and data that differ by their seeds are draws from one population. A mean over models of two
    shapes would depend on how many of each happen to be there, and a difference of two of each could be one of shapes.
    """
    groups: dict[tuple[str, ...], list[StudiedModel]] = {}
    for model in models:
        groups.setdefault(_group(claim, model), []).append(model)
    if len(groups) < 2:
        return claim.measured(models)
    measured = {group: claim.measured(alike) for group, alike in groups.items()}
    deciding = max(measured, key=lambda group: measured[group].models)
    if not measured[deciding].models:
        together = claim.measured(models)
        return missing(_APART) if together.models else together
    groups_apart = [(group, row) for group, row in measured.items() if group != deciding and row.models]
    apart = "".join(f"; apart: {_figure(row)} ({_difference(group, deciding)})" for group, row in groups_apart)
    rivals = [row for _, row in groups_apart if row.models == measured[deciding].models]
    agreed = all(row.holds == measured[deciding].holds for row in rivals)
    holds = measured[deciding].holds if agreed else None
    return replace(measured[deciding], holds=holds, detail=measured[deciding].detail + apart)


def _group(claim: Claim, model: StudiedModel) -> tuple[str, ...]:
    """What models have in common that are draws from one population."""
    settings = model.settings
    data = () if claim.compares_data else (model.language, model.domain)
    return (model.shape, str(settings.get("task", "")), str(settings.get("metric", "")), *data)


def _difference(group: tuple[str, ...], deciding: tuple[str, ...]) -> str:
    """In which respect a group differs from the one that decides."""
    return ", ".join(part for part, other in zip(group, deciding, strict=True) if part and part != other) or "others"


def _figure(measurement: Measurement) -> str:
    value, low, high = measurement.interval
    ends = "" if isnan(low) else f" ({low:.2f} to {high:.2f})"
    return f"{value:.2f}{ends}, {plural(measurement.models, 'model')}"


def _pruning_seeds(model: StudiedModel) -> set[int]:
    return {point.seed for tradeoff in model.every(Tradeoff) for point in tradeoff.points}


def decide(claim: Claim, models: Sequence[StudiedModel]) -> Verdict:
    """Decide one claim. If a record is missing, it is open, and the verdict names the command for it."""
    measurement = _of_most_models(claim, models)
    reasons = [model.missing[claim.part] for model in models if claim.part in model.missing]
    detail = measurement.detail if measurement.models else f"{(*reasons, measurement.detail)[0]}; {claim.command}"
    return Verdict(
        number=claim.number, paper=claim.paper, claim=claim.sentence, where=claim.where, statistic=claim.statistic,
        value=measurement.interval.value, low=measurement.interval.low, high=measurement.interval.high,
        models=measurement.models, runs=measurement.runs, holds=measurement.holds, detail=detail,
        changed_by=claim.changed_by,
    )  # fmt: skip
