"""Small records in which a claim of the papers is true, or false, by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from statistics import mean
from typing import Any

from headcount.claims.studied import StudiedModel
from headcount.record import Record, Signature
from records import MEASURED_ON, corpus, pruning, summary, typed

Planted = list[StudiedModel]
RELATIONS = tuple(
    f"{name} {direction}" for name in ("nsubj", "obj", "amod", "advmod") for direction in ("v->s", "s->v")
)
SECONDS = {"choosing": 1.0, "tuning": 1.0, "total": 2.0}
ENCODER = [f"encoder.{layer}.{index}" for layer in range(6) for index in range(8)]


def model(*records: Record, name: str = "m", **settings: Any) -> StudiedModel:
    return StudiedModel(name, records, settings=settings)


def relevance(values: dict[str, float], *, width: float = 0.01, leads: dict[str, list[float]] | None = None) -> Record:
    order = sorted(values, key=lambda head: -values[head])
    parts = {
        "method": "relevance", "scores": values, "ranks": {head: 1 + order.index(head) for head in values},
        "low": {head: value - width for head, value in values.items()},
        "high": {head: value + width for head, value in values.items()},
        "leads": {head: dict(zip(("value", "low", "high"), lead, strict=True)) for head, lead in (leads or {}).items()},
    }  # fmt: skip
    return typed("score", Signature("m"), parts)


def layered(weights: Sequence[float]) -> dict[str, float]:
    """The same shares in every layer, with a little of its own in each."""
    return {
        f"encoder.{layer}.{index}": weight * (1 + 0.02 * ((layer + index) % 3))
        for layer in range(6)
        for index, weight in enumerate(weights)
    }


def best(label: str, lead: float, *, baseline: float = 0.4, width: float = 0.02) -> dict[str, Any]:
    value = baseline + lead
    return {
        "role": "syntactic", "label": label, "value": value, "baseline": baseline, "threshold": 1.1 * baseline,
        "low": value - width, "high": value + width, "trials": 200, "holds": value - width > 1.1 * baseline,
        "kind": "encoder", "head": "encoder.0.0", "held_out": True,
    }  # fmt: skip


def roles(
    *,
    confidence: dict[str, float] | None = None,
    positional: Sequence[str] = (),
    rare: dict[str, Any] | None = None,
    leads: Sequence[float] = (),
    offsets: Sequence[float] = (0.4,) * 8,
    persons: dict[str, int] | None = None,
    **parts: Any,
) -> Record:
    """Roles of an encoder of 6 layers with 8 heads."""
    values = confidence or dict.fromkeys(ENCODER, 0.5)
    plain: dict[str, Any] = {
        "confidence": {head: {"value": v, "low": v - 0.02, "high": v + 0.02} for head, v in values.items()},
        "roles": {head: [] for head in values},
        "evidence": {head: [] for head in values},
        "best": [
            best(label, lead, baseline=offset) for label, lead, offset in zip(RELATIONS, leads, offsets, strict=False)
        ],
        "relative": {},
        **corpus(list(values)),
        "persons": persons or {},
        **parts,
    }
    plain["paper"]["positional"]["labels"] = dict.fromkeys(positional, "-1")
    plain["paper"]["rare"] = rare
    return typed("roles", Signature("m"), plain)


def role(name: str) -> dict[str, Any]:
    return {
        "role": name, "label": "x", "value": 0.9, "baseline": 0.4, "threshold": 0.5, "low": 0.85, "high": 0.95,
        "trials": 100, "holds": True,
    }  # fmt: skip


def rare_head(head: str) -> dict[str, Any]:
    return {
        "head": head, "rarest": 0.6, "two_rarest": 0.8, "chance_rarest": 0.1, "chance_two_rarest": 0.2, "queries": 99,
        "confidence": 0.3, "confidence_rank_in_layer": 5, "holds": True,
    }  # fmt: skip


def tradeoff(
    kept: dict[tuple[int, int], Sequence[str]],
    *,
    sites: dict[str, int],
    pruned: str = "encoder heads",
    marked: Sequence[str] = (),
    after: Callable[[str], bool] = lambda _: True,
    unsure: Sequence[str] | None = (),
    pairs: Sequence[dict[str, Any]] = (),
    compared: Sequence[dict[str, Any]] = (),
    whole_steps: int | None = 2400,
    tuned_steps: int = 2400,
    gate_values: dict[str, float] | None = None,
    metric: str = "BLEU",
    trees: int = 300,
) -> Record:
    """kept: (heads left, seed) -> their names; after: whether a head that is left has a role then."""
    everyone = [f"{site}.{index}" for site, count in sites.items() for index in range(count)]
    points = [
        {
            "way": "l0", "keep": keep, "seed": seed, "heads": list(heads), "kept_by_kind": {}, "cut": None,
            "after": quality(30.0),
            "gates": {"settled": 0.95, "reached": None, "cut_by_rank": 0}, "steps": 600, "seconds": SECONDS,
            "gate_values": gate_values,
            "command": "headcount prune m",
            "roles": {head: [has("positional" if after(head) else "delimiter")] for head in heads},
            "unsure": None if unsure is None else list(unsure),
        }
        for (keep, seed), heads in kept.items()
    ]  # fmt: skip
    parts = {
        "metric": metric, "higher_is_better": True, "measured_on": MEASURED_ON, "whole": quality(30.0),
        "gated": len(everyone), "of": {}, "heads_by_site": sites, "pruned": pruned, "points": points, "against": "l0",
        "compared": list(compared),
        "steps": {"tuned": tuned_steps, "scratch": 2400, "gates": 150, "whole": whole_steps},
        "unfinished": 0, "seconds_by_way": {},
        "whole_roles": {head: [has("syntactic" if head in marked else "same-token")] for head in everyone},
        "all_kinds": list(pairs), "looked": {"sentences": 300, "trees": trees, "fingerprint": "x"},
    }  # fmt: skip
    return typed("tradeoff", Signature("m"), parts)


def pruned_by_gates(values: dict[str, float]) -> Record:
    """values: head -> logit of its gate."""
    gates = {
        "settled": 0.95, "reached": None, "cut_by_rank": 0, "values": values, "means": {}, "trace": [],
        "settings": {"rate": 0.1},
    }  # fmt: skip
    heads = list(values)
    return typed("prune", Signature("m"), pruning(heads[:2], heads[2:], choice_details={"gates": gates}))


def quality(value: float) -> dict[str, Any]:
    return {"metric": "BLEU", "value": value, "low": value - 0.5, "high": value + 0.5}


def has(role: str) -> dict[str, Any]:
    return {"role": role, "label": "x", "value": 0.9, "baseline": 0.4}


def pair(seed: int, trained: float, scratch: float) -> dict[str, Any]:
    return {
        "way": "l0",
        "keep": 8,
        "seed": seed,
        "kept_by_kind": {},
        "trained": quality(trained),
        "scratch": quality(scratch),
    }


def effect(difference: float, *, p: float = 0.5) -> dict[str, Any]:
    return {
        "value": 30 + difference, "difference": difference, "low": difference - 0.2, "high": difference + 0.2, "p": p,
        "corrected": p, "examples": 100,
    }  # fmt: skip


def ablation(harmful: int, *, r: float = 0.8, width: float = 0.1, one_is_enough: bool = True) -> Record:
    """48 heads of which some are needed, and the same on other data with a correlation of r."""
    effects = {head: effect(-2, p=0.001) if place < harmful else effect(0.1) for place, head in enumerate(ENCODER)}
    alone = {"head": "encoder.0.0", **(effect(0.1) if one_is_enough else effect(-5, p=0.001))}
    correlation = {"r": r, "low": r - width, "high": r + width, "p": 0.01}
    parts = {
        "metric": "BLEU", "higher_is_better": True, "distance": False, "value": 30.0, "alpha": 0.01,
        "one_out": effects, "summary": summary(48),
        "other": {"value": 20.0, "pearson": correlation, "spearman": correlation, "one_out": effects},
        "all_but_one_chosen_elsewhere": {f"encoder.{layer}": alone for layer in range(12)},
    }  # fmt: skip
    return typed("ablate", Signature("m"), parts)


SHARES = [step / 10 for step in range(11)]


def points(fall: Callable[[float], float], *, top: float = 30.0, width: float = 0.3) -> list[dict[str, Any]]:
    """fall: share of heads gone -> share of the score gone."""
    values = [top * (1 - fall(share)) for share in SHARES]
    return [
        {
            "removed": round(48 * share), "share": share, "value": value, "low": value - width, "high": value + width,
            "kept_by_kind": {}, "heads": [], "tied": 0,
        }
        for share, value in zip(SHARES, values, strict=True)
    ]  # fmt: skip


def leads(lines: dict[str, dict[str, Any]], start: float, end: float, width: float) -> list[dict[str, Any]]:
    """Of each line over each other one, between two shares of heads gone."""
    means = {
        name: mean(point["value"] for point in line["points"] if start <= point["share"] <= end)
        for name, line in lines.items()
    }
    return [
        {
            "first": first, "second": second, "start": start, "end": end, "value": means[first] - means[second],
            "low": means[first] - means[second] - width, "high": means[first] - means[second] + width,
        }
        for first, second in permutations(means, 2)
    ]  # fmt: skip


def curves(
    gradient: Callable[[float], float],
    *,
    ablation: Callable[[float], float] = lambda share: share,
    gain: float = 1.0,
    by_kind: dict[str, Callable[[float], float]] | None = None,
    width: float = 0.3,
) -> Record:
    kinds = ["encoder", "decoder", "cross"]
    lines = [
        {"order": order, "kinds": kinds, "seed": None, "points": points(fall, width=width)}
        for order, fall in (("gradient", gradient), ("ablation", ablation))
    ]
    lines += [
        {"order": "random", "kinds": kinds, "seed": seed, "points": points(gradient, width=width)} for seed in range(5)
    ]
    gains = [
        {
            "share": share, "value": gain, "low": gain - width, "high": gain + width, "beaten": 5, "random": 5,
            "variance": {},
        }
        for share in SHARES
    ]  # fmt: skip
    alone = [
        {"order": "gradient", "kinds": [kind], "seed": None, "points": points(fall, width=width)}
        for kind, fall in (by_kind or {}).items()
    ]
    by_order = {line["order"]: line for line in lines if line["order"] != "random"}
    over_random = {
        "first": "gradient", "second": "random", "start": 0.15, "end": 0.65, "value": gain, "low": gain - width,
        "high": gain + width, "variance": {"models": 0.0, "seeds": 0.0, "examples": (width / 1.96) ** 2},
    }  # fmt: skip
    kinds_alone = {line["kinds"][0]: line for line in alone}
    parts = {
        "metric": "BLEU", "higher_is_better": True, "value": 30.0, "measured_on": MEASURED_ON, "num_heads": 48,
        "curves": lines, "against_random": {"gradient": gains}, 
        "leads": [over_random, *leads(by_order, 0.15, 0.65, width), *leads(kinds_alone, 0.61, 1.0, width)],
        "by_kind": alone,
    }  # fmt: skip
    return typed("curves", Signature("m"), parts)


def dynamics(by_epoch: dict[int, Callable[[float], float]]) -> Record:
    epochs = []
    for epoch, fall in by_epoch.items():
        rows = [{**point, "kept_share": point["value"] / 30} for point in points(fall)]
        for row in rows:
            del row["heads"], row["tied"]
        epochs.append({"epoch": epoch, "value": 30.0, "points": rows})
    parts = {
        "metric": "BLEU", "higher_is_better": True, "order": "gradient", "measured_on": MEASURED_ON, "by_epoch": epochs,
    }  # fmt: skip
    return typed("dynamics", Signature("m"), parts)
