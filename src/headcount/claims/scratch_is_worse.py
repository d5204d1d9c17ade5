"""V12: the same heads trained from scratch are worse than the pruned model (Voita et al. 2019, section 6.3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.claims.claim import Claim, Measurement, above, averaged, difference, missing, pooled
from headcount.claims.encoder_heads_go_first import of_all_kinds
from headcount.claims.pruned import ALL_KINDS, unsettled
from headcount.claims.studied import StudiedModel
from headcount.record.result import Quality
from headcount.record.results.tradeoff import Tradeoff, WayKind
from headcount.statistics import Interval

SCRATCH = "scratch"


def _pairs(tradeoff: Tradeoff) -> list[WayKind]:
    """Pruned models with a counterpart trained from scratch."""
    return [row for row in tradeoff.all_kinds or () if row.scratch and tradeoff.pruned == ALL_KINDS]


def _lead(tradeoff: Tradeoff) -> Interval:
    """Of the pruned model over that from scratch, mean over budgets, which share examples, and seeds."""
    lead = averaged(_paired(tradeoff)) if _paired(tradeoff) else _unpaired(_pairs(tradeoff))
    return lead if tradeoff.higher_is_better else Interval(-lead.value, -lead.high, -lead.low)


def _paired(tradeoff: Tradeoff) -> list[Interval]:
    """By example and seed, for each budget; none if the ways were compared with a third one."""
    if {row.way for row in _pairs(tradeoff)} != {tradeoff.against}:
        return []
    compared = [row.against for row in tradeoff.compared if row.way == SCRATCH and row.against]
    return [Interval(-row.difference, -row.high, -row.low) for row in compared]


def _unpaired(rows: Sequence[WayKind]) -> Interval:
    """Unpaired: over seeds if there are several, else from the intervals as if examples differed."""
    by_seed: dict[int, list[Interval]] = {}
    for row in rows:
        if row.scratch:
            by_seed.setdefault(row.seed, []).append(difference(_interval(row.trained), _interval(row.scratch)))
    return pooled([averaged(leads) for leads in by_seed.values()])


def _interval(quality: Quality) -> Interval:
    return Interval(quality.value, quality.low, quality.high)


def _steps(studied: Sequence[Tradeoff]) -> str:
    scratch, original = ([getattr(tradeoff.steps, name) for tradeoff in studied] for name in ("scratch", "whole"))
    trained_steps = _range([steps for steps in original if steps is not None]) or "an unknown number"
    unknown = f" ({original.count(None)} unknown)" if 0 < original.count(None) < len(original) else ""
    return f"{_range(scratch)} steps from scratch, the model itself had {trained_steps}{unknown}"


def _range(numbers: Sequence[int]) -> str:
    return " to ".join(map(str, sorted({min(numbers), max(numbers)}))) if numbers else ""


def _measure(models: Sequence[StudiedModel]) -> Measurement:
    with_pairs = [[tradeoff for tradeoff in model.every(Tradeoff) if _pairs(tradeoff)] for model in models]
    studied = [tradeoffs[0] for tradeoffs in with_pairs if tradeoffs]
    if not studied:
        return missing("no trade-off over all kinds with models trained from scratch")
    interval = pooled([_lead(tradeoff) for tradeoff in studied], shared=True)
    enough = all(row.steps.whole is not None and row.steps.scratch >= row.steps.whole for row in studied)
    holds = above(interval, 0.0)
    hurried = any(row.steps.tuned < row.steps.scratch for row in studied)
    if (holds and not enough) or (holds is False and hurried):  # short training would explain it too
        holds = None
    runs = sum(len({row.seed for row in _pairs(tradeoff)}) for tradeoff in studied)
    if runs == 1:  # two trainings differ by their seeds too
        holds = None
    unpaired = "" if all(map(_paired, studied)) else "; not paired by example"
    pruned = f", the pruned model {_range([row.steps.tuned for row in studied])}" if hurried else ""
    detail = f"{studied[0].metric}; {_steps(studied)}{pruned}{unpaired}{unsettled(of_all_kinds(models))}"
    return Measurement(interval, holds, len(studied), runs, detail)


CLAIM = Claim(
    number="V12",
    sentence="A model trained from scratch with the heads of a pruned one is worse than the pruned one.",
    where="section 6.3.1, Table 2",
    statistic="quality of the pruned model less that of the model from scratch, mean over budgets and seeds; above 0",
    part="all-kinds",
    changed_by=(
        "as many steps from scratch as the model had, and as many of gates and tuning; more seeds: one seed of one "
        "model leaves it open"
    ),
    measure=_measure,
)
