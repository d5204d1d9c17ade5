"""For every claim of the papers, models whose records make it true, and false, by construction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from claimed import (
    ENCODER,
    Planted,
    ablation,
    curves,
    dynamics,
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
        models += [model(roles(leads=other), source={"data": f"grammar:{language}"})] * 5
    return models


def persons(holds: bool) -> Planted:
    leads = {"dialogue": 0.4, "written": 0.05} if holds else {"dialogue": 0.05, "written": 0.4}
    counts = {"dialogue": {"1": 30, "2": 30, "3": 40}, "written": {"1": 3, "2": 2, "3": 95}}
    return [
        model(roles(leads=[lead + 0.01 * seed], persons=counts[domain]), source={"data": f"grammar:rich:{domain}"})
        for domain, lead in leads.items()
        for seed in range(3)
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


def _left(counts: dict[str, int], *, seed: int) -> list[str]:
    """So many heads of each layer of a kind; one more of the first kind for an odd seed."""
    return [
        f"{kind}.{layer}.{index}"
        for kind, count in counts.items()
        for layer in range(6)
        for index in range(count + (kind == next(iter(counts)) and layer == 0 and seed % 2))
    ]


def by_kind(holds: bool) -> Planted:
    counts = {"encoder": 1, "decoder": 2, "cross": 4} if holds else {"encoder": 3, "decoder": 2, "cross": 1}
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


def functions(holds: bool, **parts: Any) -> Planted:
    sites = {f"encoder.{layer}": 16 for layer in range(12)}
    kept = [f"encoder.{layer}.{index}" for layer in range(12) for index in range(6)]
    roles_of = {"after": lambda head: holds or head.endswith("0"), **parts}
    return [model(tradeoff({(68, 0): kept}, sites=sites, **roles_of)) for _ in range(3)]  # one has too few layers


def late(share: float) -> float:
    """Nothing is lost before half of the heads are gone."""
    return max(0.0, 2 * share - 1)


def straight(share: float) -> float:
    return share


SENSITIVE = {"encoder": late, "decoder": late, "cross": straight}
ROBUST = {"encoder": straight, "decoder": late, "cross": late}
TRUTHS: dict[str, Callable[[bool], Planted]] = {
    "V1": concentrated, "V2": confident, "V3": positional, "V4": rare, "V5": syntactic, "V6": languages, "V7": persons,
    "V8": surviving, "V9": gated, "V10": by_kind, "V11": by_depth, "V12": from_scratch, "V13": functions,
    "M1": lambda holds: [model(ablation(2 if holds else 46))],
    "M2": lambda holds: [model(ablation(4, one_is_enough=holds))],
    "M3": lambda holds: [model(ablation(4, r=0.8 if holds else -0.8))],
    "M4": lambda holds: [model(curves(late if holds else straight))],
    "M5": lambda holds: [model(curves(late, gain=2.0 if holds else -2.0))],
    "M6": lambda holds: [model(curves(late if holds else straight, ablation=straight if holds else late))],
    "M7": lambda holds: [model(curves(late, by_kind=SENSITIVE if holds else ROBUST))],
    "M8": lambda holds: [model(dynamics({1: straight, 12: late} if holds else {1: late, 12: straight}))],
    "M9": lambda holds: [model(dynamics({1: straight, 10: late if holds else straight, 12: late}))],
}  # fmt: skip
