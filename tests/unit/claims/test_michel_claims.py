"""Claims of Michel et al. 2019 on records in which they are true, and false, by construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from claimed import Planted, ablation, curves, dynamics, model
from headcount.claims.claim import ordered
from headcount.claims.ledger import decide
from headcount.record import Record

CLAIMS = {claim.number: claim for claim in ordered(["michel2019"])}


def late(share: float) -> float:
    """Nothing is lost before half of the heads are gone."""
    return max(0.0, 2 * share - 1)


def straight(share: float) -> float:
    return share


SENSITIVE = {"encoder": late, "decoder": late, "cross": straight}
ROBUST = {"encoder": straight, "decoder": late, "cross": late}
PLANTED: dict[str, Callable[[bool], Planted]] = {
    "M1": lambda holds: [model(ablation(4 if holds else 44))],
    "M2": lambda holds: [model(ablation(4, one_is_enough=holds))],
    "M3": lambda holds: [model(ablation(4, r=0.8 if holds else -0.8))],
    "M4": lambda holds: [model(curves(late if holds else straight))],
    "M5": lambda holds: [model(curves(late, gain=2.0 if holds else -2.0))],
    "M6": lambda holds: [model(curves(late if holds else straight, ablation=straight if holds else late))],
    "M7": lambda holds: [model(curves(late, by_kind=SENSITIVE if holds else ROBUST))],
    "M8": lambda holds: [model(dynamics({1: straight, 12: late} if holds else {1: late, 12: straight}))],
    "M9": lambda holds: [model(dynamics({1: straight, 10: late if holds else straight, 12: late}))],
}  # fmt: skip


def test_every_claim_has_its_truth() -> None:
    assert list(PLANTED) == list(CLAIMS)


@pytest.mark.parametrize("number", PLANTED)
@pytest.mark.parametrize("holds", [True, False])
def test_a_planted_truth_is_found(number: str, holds: bool) -> None:
    verdict = decide(CLAIMS[number], PLANTED[number](holds))
    assert verdict.holds is holds, verdict
    assert verdict.low <= verdict.value <= verdict.high
    assert verdict.models
    assert verdict.runs


@pytest.mark.parametrize("number", PLANTED)
def test_without_records_a_claim_is_open_and_says_what_makes_them(number: str) -> None:
    verdict = decide(CLAIMS[number], [model()])
    assert verdict.holds is None
    assert verdict.models == 0
    assert verdict.detail.endswith(CLAIMS[number].command)


@pytest.mark.parametrize("number", ["M4", "M5", "M6", "M7"])
def test_a_wide_interval_leaves_it_open(number: str) -> None:
    wide = curves(late, ablation=straight, gain=2.0, by_kind=SENSITIVE, width=40.0)
    verdict = decide(CLAIMS[number], [model(wide)])
    assert verdict.holds is None
    assert verdict.models == 1


def test_a_correlation_that_two_heads_carry_stays_open() -> None:
    assert decide(CLAIMS["M3"], [model(ablation(4, r=0.97, width=1.2))]).holds is None


def test_a_head_chosen_where_it_is_measured_is_no_evidence() -> None:
    record = ablation(4)
    same = Record("ablate", record.signature, replace(record.parts, all_but_one_chosen_elsewhere=None))
    verdict = decide(CLAIMS["M2"], [model(same)])
    assert verdict.holds is None
    assert "chosen on the examples it is measured on" in verdict.detail
    best = record.parts.all_but_one_chosen_elsewhere
    held_out = replace(record.parts, all_but_one=best, all_but_one_chosen_elsewhere=None, alone_held_out=True)
    assert decide(CLAIMS["M2"], [model(Record("ablate", record.signature, held_out))]).holds is True


@pytest.mark.parametrize("number", ["M8", "M9"])
def test_short_runs_say_which_epoch_is_missing(number: str) -> None:
    verdict = decide(CLAIMS[number], [model(dynamics({1: straight, 4: late}))])
    assert verdict.holds is None
    assert "the last one is 4" in verdict.detail


def test_the_earliest_checkpoint_that_has_learned_something_counts() -> None:
    """One that knows nothing has no curve; one within the first epoch is earlier than epoch 1."""
    nothing = lambda _: 1.0  # noqa: E731
    verdict = decide(CLAIMS["M8"], [model(dynamics({0.125: nothing, 0.5: straight, 1: late, 12: late}))])
    assert verdict.holds is True
    assert decide(CLAIMS["M8"], [model(dynamics({0.5: nothing, 1: late, 12: late}))]).holds is None


def test_models_that_disagree_leave_it_open() -> None:
    """Each alone is certain; together they are not."""
    apart = [model(curves(late, gain=gain), name=str(gain)) for gain in (5.0, -4.0)]
    verdict = decide(CLAIMS["M5"], apart)
    assert (verdict.holds, verdict.models, verdict.runs) == (None, 2, 10)
