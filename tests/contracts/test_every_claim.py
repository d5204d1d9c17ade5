"""What every claim promises: a planted truth is found in both directions, and without records it is open."""

from __future__ import annotations

import pytest

from claimed import model
from headcount.claims.claim import ordered
from headcount.claims.ledger import decide
from truths import TRUTHS

CLAIMS = {claim.number: claim for claim in ordered()}


def test_every_claim_has_its_truth() -> None:
    assert list(TRUTHS) == list(CLAIMS)


@pytest.mark.parametrize("number", CLAIMS)
@pytest.mark.parametrize("holds", [True, False])
def test_a_planted_truth_is_found(number: str, holds: bool) -> None:
    verdict = decide(CLAIMS[number], TRUTHS[number](holds))
    assert verdict.holds is holds, verdict
    assert verdict.low <= verdict.value <= verdict.high
    assert verdict.models
    assert verdict.runs


@pytest.mark.parametrize("number", CLAIMS)
def test_without_records_a_claim_is_open_and_says_what_makes_them(number: str) -> None:
    verdict = decide(CLAIMS[number], [model()])
    assert verdict.holds is None
    assert verdict.models == 0
    assert verdict.detail.endswith(CLAIMS[number].command)
