"""Claims of Voita et al. 2019 on records in which they are true, and false, by construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from claimed import (
    ENCODER,
    Planted,
    layered,
    model,
    pair,
    pruned_by_gates,
    rare_head,
    relevance,
    role,
    roles,
    tradeoff,
)
from headcount.claims.claim import ordered
from headcount.claims.gates_open_for_roles import within_layers
from headcount.claims.ledger import decide
from headcount.claims.relevance_concentrates import broken_stick, gini
from headcount.claims.specialised_heads_survive import survival
from headcount.record import Record, Signature

CLAIMS = {claim.number: claim for claim in ordered(["voita2019"])}
SITES = {f"{kind}.{layer}": 4 for kind in ("encoder", "decoder", "cross") for layer in range(6)}
ENCODER_SITES = {f"encoder.{layer}": 8 for layer in range(6)}


def concentrated(holds: bool) -> Planted:
    shares = (0.5, 0.4, *[0.02] * 6) if holds else (0.125,) * 8
    return [model(relevance(layered(shares)))]


def confident(holds: bool) -> Planted:
    sign = 1 if holds else -1
    values = {head: 0.5 + sign * 0.005 * place for place, head in enumerate(ENCODER)}
    return [model(roles(confidence=values, relevance={head: float(place) for place, head in enumerate(ENCODER)}))]


def positional(holds: bool) -> Planted:
    confidence = dict.fromkeys(ENCODER, 0.9 if holds else 0.6)
    return [model(roles(confidence=confidence, positional=ENCODER[:3]))]


def rare(holds: bool) -> Planted:
    scores = {head: 0.3 if head == ("encoder.0.2" if holds else "encoder.0.5") else 0.1 for head in ENCODER}
    return [model(relevance(scores), roles(rare=rare_head("encoder.0.2")))]


def syntactic(holds: bool) -> Planted:
    lead = 0.2 if holds else -0.2
    return [model(roles(leads=[lead + 0.01 * place for place in range(8)]))]


def languages(holds: bool) -> Planted:
    leads = [0.05 * place + 0.004 * (place % 3) for place in range(8)]
    models = []
    for language in ("rich", "bare"):
        other = leads if language == "rich" or holds else leads[::-1]
        models.append(model(roles(leads=other), source={"data": f"grammar:{language}"}))
    return models


def persons(holds: bool) -> Planted:
    varied, uniform = (0.4, 0.05) if holds else (0.05, 0.4)
    return [
        model(roles(leads=[varied], persons={"1": 30, "2": 30, "3": 40}), source={"data": "grammar:rich:dialogue"}),
        model(roles(leads=[uniform], persons={"1": 3, "2": 2, "3": 95}), source={"data": "grammar:rich:written"}),
    ]


def surviving(holds: bool) -> Planted:
    marked = [head for head in ENCODER if int(head[-1]) < 3]
    kept = [head for head in ENCODER if (int(head[-1]) < 3) == holds and int(head[-1]) < 6]
    return [model(tradeoff({(18, seed): kept for seed in (0, 1)}, sites=ENCODER_SITES, marked=marked))]


def gated(holds: bool) -> Planted:
    marked = {head: [role("rare")] if int(head[-1]) < 3 else [] for head in ENCODER}
    sign = 1 if holds else -1
    values = {head: sign * (1.0 if marked[head] else -1.0) + 0.01 * place for place, head in enumerate(ENCODER)}
    return [model(pruned_by_gates(values), roles(roles=marked))]


def test_gates_of_a_trade_off_are_enough() -> None:
    """A whole study has these; one pruned model more narrows nothing."""
    (planted,) = gated(True)
    values = planted.records[0].parts.chosen.gates.values
    marked = [head for head in ENCODER if int(head[-1]) < 3]
    kept = {(24, seed): ENCODER[:24] for seed in (0, 1)}
    record = tradeoff(kept, sites=ENCODER_SITES, marked=marked, gate_values=values)
    verdict = decide(CLAIMS["V9"], [model(record)])
    assert (verdict.holds, verdict.models, verdict.runs) == (True, 1, 2)
    single = decide(CLAIMS["V9"], [planted])
    assert (verdict.value, verdict.low, verdict.high) == (single.value, single.low, single.high)


def _left(counts: dict[str, int], *, seed: int) -> list[str]:
    """So many heads of each layer of a kind; one more of the first kind for an odd seed."""
    return [
        f"{kind}.{layer}.{index}"
        for kind, count in counts.items()
        for layer in range(6)
        for index in range(count + (kind == next(iter(counts)) and layer == 0 and seed % 2))
    ]


def by_kind(holds: bool) -> Planted:
    counts = {"encoder": 1, "decoder": 2, "cross": 4} if holds else {"encoder": 4, "decoder": 2, "cross": 1}
    kept = {(42, seed): _left(counts, seed=seed) for seed in range(4)}
    return [model(tradeoff(kept, sites=SITES, pruned="heads of all kinds"))]


def by_depth(holds: bool) -> Planted:
    low, high = ("decoder", "cross") if holds else ("cross", "decoder")
    kept = {}
    for seed in range(4):
        heads = [f"{low}.{layer}.{index}" for layer in range(2) for index in range(4)]
        heads += [f"{high}.{layer}.{index}" for layer in range(4, 6) for index in range(4)]
        kept[20, seed] = [*heads, f"{low}.2.{seed}", f"{high}.3.{seed}", "encoder.0.0"]
    return [model(tradeoff(kept, sites=SITES, pruned="heads of all kinds"))]


def from_scratch(holds: bool, **parts: Any) -> Planted:
    lead = 3.0 if holds else -3.0
    pairs = [pair(seed, 28 + lead + 0.1 * seed, 28) for seed in range(4)]
    kept = {(20, seed): ["encoder.0.0"] for seed in range(4)}
    return [model(tradeoff(kept, sites=SITES, pruned="heads of all kinds", pairs=pairs, **parts))]


def functions(holds: bool) -> Planted:
    sites = {f"encoder.{layer}": 16 for layer in range(12)}
    kept = [f"encoder.{layer}.{index}" for layer in range(12) for index in range(6)]
    return [model(tradeoff({(68, 0): kept}, sites=sites, after=lambda head: holds or head.endswith("0")))]


PLANTED: dict[str, Callable[[bool], Planted]] = {
    "V1": concentrated, "V2": confident, "V3": positional, "V4": rare, "V5": syntactic, "V6": languages, "V7": persons,
    "V8": surviving, "V9": gated, "V10": by_kind, "V11": by_depth, "V12": from_scratch, "V13": functions,
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


@pytest.mark.parametrize("number", ["V10", "V11"])
def test_one_seed_decides_nothing(number: str) -> None:
    (planted,) = PLANTED[number](True)
    parts = planted.records[0].parts
    alone = Record("tradeoff", Signature("m"), replace(parts, points=parts.points[:1]))
    verdict = decide(CLAIMS[number], [model(alone)])
    assert verdict.holds is None
    assert verdict.value > 0
    assert np.isnan(verdict.low)


def test_roles_by_chance_leave_survival_open() -> None:
    """Marks that have nothing to do with the mask: about one in twenty is called, not more."""
    random = np.random.default_rng(0)
    layers = np.repeat(np.arange(6), 8)
    called = 0
    for _ in range(100):
        kept = np.stack([random.permutation(np.repeat([1.0, 0.0], [16, 32])) for _ in range(2)])
        marked = random.permutation(np.repeat([1.0, 0.0], [18, 30]))
        excess = survival(kept, marked, layers).excess
        called += not excess.low <= 0 <= excess.high
    assert called <= 12


def test_survival_is_against_the_same_layer_profile() -> None:
    """Roles in the layer that is kept anyway are no evidence."""
    layers = np.repeat([0, 1], 8)
    kept = np.array([[1.0] * 8 + [0.0] * 8])
    marked = np.array([1.0] * 4 + [0.0] * 12)
    row = survival(kept, marked, layers)
    assert (row.share, row.expected) == (1.0, 1.0)
    assert row.excess.low <= 0 <= row.excess.high


def test_scratch_with_fewer_steps_than_the_model_decides_nothing() -> None:
    verdict = decide(CLAIMS["V12"], from_scratch(True, whole_steps=9000))
    assert verdict.holds is None
    assert verdict.low > 0
    assert "2400 steps from scratch, the model itself had 9000" in verdict.detail
    assert "an unknown number" in decide(CLAIMS["V12"], from_scratch(True, whole_steps=None)).detail
    assert decide(CLAIMS["V12"], from_scratch(False, whole_steps=9000)).holds is False, "even so it is no worse"


def test_scratch_is_compared_on_the_same_examples_where_it_can() -> None:
    """The examples' intervals of both models overlap; paired, the difference is clear."""
    against = {
        "difference": -0.3, "low": -0.4, "high": -0.2, "p": 0.001, "by_seed": {"0": -0.3}, "variance": {}, "behind": "",
    }  # fmt: skip
    compared = [{"way": "scratch", "keep": 8, "seeds": [0], "lost": against, "against": against}]
    planted = {"pairs": [pair(0, 28.3, 28)], "sites": SITES, "pruned": "heads of all kinds"}
    paired = decide(CLAIMS["V12"], [model(tradeoff({(8, 0): ["encoder.0.0"]}, compared=compared, **planted))])
    assert (paired.value, paired.low, paired.high, paired.holds) == (0.3, 0.2, 0.4, True)
    unpaired = decide(CLAIMS["V12"], [model(tradeoff({(8, 0): ["encoder.0.0"]}, **planted))])
    assert unpaired.holds is None
    assert "not paired by example" in unpaired.detail


def test_other_roles_than_the_papers_do_not_count() -> None:
    assert decide(CLAIMS["V13"], functions(False)).value == pytest.approx(1 / 6)


def test_helpers_by_hand() -> None:
    assert broken_stick(2, 1) == pytest.approx(0.75)
    assert broken_stick(4, 4) == pytest.approx(1)
    assert gini(np.array([1.0, 1.0, 1.0])) == pytest.approx(0)
    assert gini(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(0.75)
    layers = np.array([0, 0, 1, 1])
    assert within_layers(np.array([2.0, 1.0, 0.0, 9.0]), np.array([True, False, True, False]), layers) == 0.5
