"""Small records with made-up numbers, one for each study that has figures: what the report is tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.record import Record, Signature
from headcount.record.codec import decode, encode
from headcount.record.record import results

MEASURED_ON = {
    "split": "test", "examples": 20, "chosen_on": [{"split": "dev", "examples": 20}], "overlap": 0, "held_out": True,
}  # fmt: skip


def typed(study: str, signature: Signature, parts: Any) -> Record:
    """A record of plain numbers, checked against the type of its result."""
    return Record(study, signature, decode(results[study], encode(parts), source=f"the {study} sample", path="parts"))


def changed(record: Record, **parts: Any) -> Record:
    """The same record with other parts."""
    return typed(record.study, record.signature, {**encode(record.parts), **parts})


def summary(heads: int) -> dict[str, int]:
    return {
        "num_heads": heads, "significant": 5, "significant_and_better_without": 1, "significant_corrected": 4,
        "significant_corrected_and_better_without": 0,
    }  # fmt: skip


def names(sites: dict[str, int]) -> list[str]:
    return [f"{site}.{index}" for site, count in sites.items() for index in range(count)]


TRANSLATION = {"encoder.0": 4, "encoder.1": 3, "decoder.0": 4, "cross.0": 4}  # ragged: one layer lost a head


def effects(sites: dict[str, int], seed: int) -> dict[str, dict[str, float]]:
    random = np.random.default_rng(seed)
    found = {}
    for name in names(sites):
        change = float(random.normal(-0.5, 1))
        found[name] = {
            "value": 30 + change, "difference": change, "low": change - 0.4, "high": change + 0.4,
            "p": 0.001 if abs(change) > 1 else 0.3, "corrected": 0.005 if abs(change) > 1 else 1.0,
            "examples": 20,
        }  # fmt: skip
    return found


def ablation(model: str = "shop/model-a", seed: int = 0) -> Record:
    correlation = {"r": 0.6, "low": 0.2, "high": 0.8, "p": 0.01}
    parts = {
        "metric": "BLEU", "higher_is_better": True, "distance": False, "value": 30.0, "alpha": 0.01,
        "one_out": effects(TRANSLATION, seed), "summary": summary(15),
        "other": {
            "value": 20.0, "pearson": correlation, "spearman": correlation, "one_out": effects(TRANSLATION, seed + 1),
        },
    }  # fmt: skip
    return typed("ablate", Signature(model), parts)


def _points(total: int, seed: int) -> list[dict[str, object]]:
    random = np.random.default_rng(seed)
    found = []
    for removed in range(0, total + 1, max(1, total // 5)):
        value = 30 * (1 - (removed / total) ** 2) + float(random.normal(0, 0.2))
        found.append(
            {
                "removed": removed, "share": removed / total, "value": value, "low": value - 1, "high": value + 1,
                "kept_by_kind": {"encoder": 7, "decoder": 4, "cross": 4}, "heads": [],
            }
        )  # fmt: skip
    return found


def curves(model: str = "shop/model-a") -> Record:
    kinds = ["encoder", "decoder", "cross"]
    lines = [
        {"order": order, "kinds": kinds, "seed": seed, "points": _points(15, number)}
        for number, (order, seed) in enumerate([("gradient", None), ("ablation", None), ("random", 0), ("random", 1)])
    ]
    alone = [{"order": "gradient", "kinds": [kind], "seed": None, "points": _points(5, 9)} for kind in kinds]
    parts = {
        "metric": "BLEU", "higher_is_better": True, "value": 30.0, "measured_on": MEASURED_ON, "num_heads": 15,
        "curves": lines, "against_random": {}, "leads": [], "by_kind": alone,
    }  # fmt: skip
    return typed("curves", Signature(model), parts)


def dynamics() -> Record:
    epochs = []
    for epoch in (1, 2, 5):
        points = [{**point, "kept_share": float(point["value"]) / 30} for point in _points(10, epoch)]  # type: ignore[arg-type]
        for point in points:
            del point["heads"]
        epochs.append({"epoch": epoch, "value": 10.0 * epoch, "points": points})
    epochs[0]["points"][-1]["kept_share"] = None  # type: ignore[index]
    parts: dict[str, Any] = {
        "metric": "BLEU",
        "higher_is_better": True,
        "order": "gradient",
        "by_epoch": epochs,
    }
    parts["measured_on"] = MEASURED_ON
    return typed("dynamics", Signature("shop/model-a"), parts)


def speed() -> Record:
    rows = [
        {
            "model": name, "what": what, "batch": batch, "length": 32, "seconds": 0.1, "shortest": 0.09,
            "longest": 0.12, "per_second": 10.0 * batch, "faster": faster, "low": faster - 0.1, "high": faster + 0.1,
        }
        for what in ("reading", "writing")
        for batch in (1, 4, 16)
        for name, faster in (("shop/model-a", 1.0), ("shop/model-b", 1.2))
    ]  # fmt: skip
    sizes = {"shop/model-a": size(15), "shop/model-b": size(8)}
    parts = {"rows": rows, "models": sizes, "threads": 2, "device": "cpu"}
    return typed("bench", Signature("shop/model-a"), parts)


def size(heads: int) -> dict[str, int]:
    return {
        "stated_heads": heads, "parameters": 1000, "weight_bytes": 4000, "cache_bytes": 300, "flops": 5000,
        "length": 32,
    }  # fmt: skip


def evidence(role: str, label: str, value: float, *, holds: bool = True) -> dict[str, object]:
    return {
        "role": role, "label": label, "value": value, "baseline": 0.4, "threshold": 0.5, "low": value - 0.05,
        "high": value + 0.05, "trials": 100, "holds": holds,
    }  # fmt: skip


def roles(model: str = "shop/model-a", seed: int = 0, *, relevance: bool = True) -> Record:
    random = np.random.default_rng(seed)
    heads = names(TRANSLATION)
    held = [
        [evidence("positional", "-1", 0.95)],
        [
            evidence("syntactic", "advmod a->v", 0.7), evidence("syntactic", "obj v->o", 0.6),
            evidence("delimiter", "end", 0.6),
        ],
        [evidence("rare", "two rarest", 0.6)],
        [],
        [
            evidence("positional", "+1", 0.93), evidence("syntactic", "nsubj s->v", 0.6),
            evidence("same-token", "another occurrence", 0.6),
        ],
        [evidence("alignment", "monotone", 0.7)],
    ]  # fmt: skip
    labels = ("nsubj v->s", "nsubj s->v", "obj v->o", "obj o->v")
    parts: dict[str, Any] = {
        "confidence": {head: {"value": float(random.random()), "low": 0.1, "high": 0.9} for head in heads},
        "roles": {head: held[place % len(held)] for place, head in enumerate(heads)},
        "best": [
            {"kind": "encoder", "head": "encoder.0.1", "held_out": True,
             **evidence("syntactic", label, 0.3 + place / 9, holds=place > 1)}
            for place, label in enumerate(labels)
        ],
        "relative": {label: {"-12": 3, "-2": 5, "-1": 20, "1": 8, "3": 2} for label in labels},
    }  # fmt: skip
    if relevance:
        parts["relevance"] = {head: float(random.random()) for head in heads}
    parts |= {"evidence": parts["roles"], **corpus(heads)}
    return typed("roles", Signature(model, arguments={"data": "grammar dev"}), parts)


def corpus(heads: list[str]) -> dict[str, Any]:
    """What a record of roles says beside its evidence."""
    positional = {"labels": {}, "confidence": {}, "above": 0, "mean_confidence_of_others": 0.5}
    paper = {
        "kind": "encoder", "num_heads": 7, "by_role": {}, "without_role": 1, "positional": positional, "rare": None,
    }  # fmt: skip
    return {
        "left_out": dict.fromkeys(heads, 0.25), "relations": {"obj": 9}, "paper": paper, "sentences": 30, "trees": 30,
        "skipped": {}, "persons": {},
    }  # fmt: skip


def attention(tokens: int = 30) -> Record:
    weights = np.random.default_rng(0).dirichlet(np.full(tokens, 0.1), tokens)
    words = [f"word{number}" if number % 3 else "$5" for number in range(tokens)]
    parts = {"head": "encoder.0.3", "text": "", "queries": words, "keys": words, "weights": weights.tolist()}
    return typed("attention", Signature("shop/model-a"), parts)


def quality(value: float) -> dict[str, Any]:
    return {"metric": "BLEU", "value": value, "low": value - 1, "high": value + 1}


def compensation(model: str = "shop/model-a") -> Record:
    def points(height: float) -> list[dict[str, object]]:
        return [
            {"removed": count, "share": count / 20, "value": height * count, "low": height * count * 0.9,
             "high": height * count * 1.1, "seconds": 2.0 + count * height, "removed_heads": []}
            for count in (2, 4, 6)
        ]  # fmt: skip

    parts = {
        "metric": "BLEU", "num_heads": 20, "order": "gradient", "measured_on": MEASURED_ON,
        "full": {"loss": 3.0, "quality": quality(30.0)}, "course": [{"removed": 4, "quality": quality(28.0)}],
        "compensations": {"none": points(0.3), "lstsq": points(0.1)},
        "at": {"removed": 4, "quality": {"none": quality(28.0), "lstsq": quality(29.0)}, "ratios": {}},
    }  # fmt: skip
    return typed("compensation", Signature(model), parts)


def measured(value: float) -> dict[str, Any]:
    return {"metric": "BLEU", "value": value, "low": value - 1, "high": value + 1}


def held_role(role: str, label: str, value: float) -> dict[str, Any]:
    return {"role": role, "label": label, "value": value, "baseline": 0.1}


def difference(value: float, *seeds: float) -> dict[str, Any]:
    """Of two models, with the values of two seeds."""
    by_seed = dict(enumerate(seeds or (value - 0.5, value + 0.5)))
    return {
        "difference": value, "low": value - 1, "high": value + 1, "p": None, "by_seed": by_seed,
        "variance": {"models": 0.0, "seeds": 0.2, "examples": 0.1}, "behind": "1 model, 2 seeds: t-interval over seeds",
    }  # fmt: skip


def pruning(removed_heads: list[str], heads: list[str], **parts: Any) -> dict[str, Any]:
    """The parts of a prune record. before, after: quality; parts: further ones."""
    of_kind = {"num_heads": 4, "parameters": 100, "flops": None}
    spent = {"length": 128, "flops": 5000, "cache_bytes": 300, "kinds": {"encoder": of_kind}}
    before, after = parts.pop("before", None), parts.pop("after", None)
    return {
        "method": "rank-gradient", "pipeline": "rank-gradient/untuned", "removed_heads": removed_heads,
        "num_heads": len(removed_heads) + len(heads), "kept_by_kind": {"encoder": len(heads)}, "heads": heads,
        "verified": True, "quality": {"before": before, "cut": after, "after": after}, "statistics": {},
        "seconds": {"choosing": 1.0, "tuning": 0.0, "total": 1.0},
        "cost": {"before": {**spent, "parameters": 1000}, "after": {**spent, "parameters": 900}}, "choice_details": {},
        "metric": "BLEU", "higher_is_better": True, "measured_on": MEASURED_ON, **parts,
    }  # fmt: skip


def tradeoff(model: str = "shop/model-a", *, kinds: bool = True) -> Record:
    """kinds: heads of all kinds were pruned, not of the encoder alone."""
    random = np.random.default_rng(3)
    encoder = names({f"encoder.{layer}": 4 for layer in range(6)})
    possible = [
        [held_role("positional", "-1", 0.95)],
        [held_role("syntactic", "obj v->o", 0.7), held_role("syntactic", "nsubj s->v", 0.6)],
        [held_role("rare", "two rarest", 0.6)],
        [held_role("delimiter", "end", 0.6)],
        [],
        [],
    ]
    whole = {head: possible[int(random.integers(len(possible)))] for head in encoder}
    strength = dict(zip(encoder, random.random(len(encoder)) + [bool(whole[head]) for head in encoder], strict=True))

    def drifted(head: str, keep: int) -> list[dict[str, Any]]:
        if random.random() < 1 - keep / 30:
            return whole[head] + possible[int(random.integers(3))]
        return whole[head] if random.random() < 0.8 else possible[int(random.integers(len(possible)))]

    better = {"l0": 3.0, "rank-gradient": 2.0, "rank-gradient/untuned": -4.0, "greedy": 0.0, "scratch": 1.0}
    points = []
    for way, lead in better.items():
        for keep in (16, 8, 3):
            for seed in (0,) if "untuned" in way or way == "greedy" else (0, 1):
                left = sorted(encoder, key=lambda head: -strength[head])[:keep]
                cross = 6 if kinds else 8
                heads = [
                    *(head for head in encoder if head in left),
                    *names({"cross.0": cross // 2, "cross.1": cross // 2}),
                ]
                trained = 0 if "untuned" in way or way == "greedy" else 2400 if way == "scratch" else 600
                points.append(
                    {
                        "way": way, "keep": keep + (cross if kinds else 0), "seed": seed,
                        "after": measured(24 + lead + keep / 8 + seed / 2),
                        "cut": measured(20.0) if way != "scratch" else None,
                        "kept_by_kind": {"encoder": keep, "cross": cross},
                        "heads": heads, "roles": {head: drifted(head, keep) for head in heads if head in whole},
                        "steps": trained, "like": "l0", "command": "headcount prune",
                        "seconds": {"choosing": 2.0, "tuning": trained / 20, "total": 2.0 + trained / 20 + len(way)},
                    }
                )  # fmt: skip
    points += [
        {**points[0], "way": "rank-gradient", "keep": 32 if kinds else 24, "seed": seed, "after": measured(30.5 + seed)}
        for seed in (0, 1)
    ]
    drift = [
        {
            "way": point["way"], "keep": point["keep"], "seed": point["seed"],
            "changes": {
                "num_heads": len(point["roles"]), "same": 2, "gained": 1, "lost_roles": 0, "exchanged": 0,
                "by_role": {"positional": {"whole": 2, "left": 1}}, "functions": {"whole": 5, "left": 4},
            },
        }
        for point in points
    ]  # fmt: skip
    parts: dict[str, Any] = {
        "metric": "BLEU", "higher_is_better": True, "measured_on": MEASURED_ON, "whole": measured(30.0),
        "gated": 32 if kinds else 24, "points": points, "of": {"encoder": 24, "cross": 8}, "against": "rank-gradient",
        "compared": [], "unfinished": 0,
        "heads_by_site": {**{f"encoder.{layer}": 4 for layer in range(6)}, "cross.0": 4, "cross.1": 4},
        "pruned": "heads of all kinds" if kinds else "encoder heads",
        "steps": {"tuned": 600, "scratch": 2400}, "seconds_by_way": dict.fromkeys(better, 30.0),
        "whole_roles": whole, "looked": {"sentences": 300, "trees": 300, "fingerprint": "x"}, "drift": drift,
        "hard_concrete": gates().parts.hard_concrete,
    }  # fmt: skip
    if kinds:
        parts["all_kinds"] = [
            {
                "way": "l0", "keep": point["keep"], "seed": 0, "kept_by_kind": point["kept_by_kind"],
                "trained": point["after"], "scratch": measured(25.0),
            }
            for point in points
            if point["way"] == "l0" and point["seed"] == 0
        ]  # fmt: skip
    return typed("tradeoff", Signature(model), parts)


def gates() -> Record:
    heads = names({"encoder.0": 4, "encoder.1": 3})
    trace = [
        {"step": step, "loss": 1.0, "open": 7 - step // 20, "expected": 6.5, "settled": 0.5} for step in (20, 40, 60)
    ]
    found = {
        "trace": trace, "means": dict.fromkeys(heads, 0.4), "values": dict.fromkeys(heads, -0.2), "settled": 0.5,
        "reached": None, "cut_by_rank": 0, "settings": {"rate": 0.1},
    }  # fmt: skip
    shapes = [
        {"log_a": log_a, "beta": 0.5, "low": -0.1, "high": 1.1, "zero": zero, "one": one, "mean": 0.5}
        for log_a, zero, one in ((0.0, 0.23, 0.23), (2.0, 0.04, 0.69), (-3.0, 0.86, 0.01))
    ]
    chosen = {"gates": found, "hard_concrete": shapes}
    return typed("prune", Signature("shop/model-a"), pruning(heads[:1], heads[1:], method="l0", choice_details=chosen))


# For each figure the records it is tried on.
SAMPLES = {
    "gates-course": [gates()],
    "tradeoff": [tradeoff()],
    "tradeoff-time": [tradeoff()],
    "kept-roles": [tradeoff(kinds=False)],
    "kept-by-kind": [tradeoff()],
    "kept-by-layer": [tradeoff()],
    "hard-concrete": [gates()],
    "ablation-map": [ablation()],
    "ablation-histogram": [ablation()],
    "transfer": [ablation()],
    "pruning-curves": [curves()],
    "pruning-by-kind": [curves()],
    "dynamics": [dynamics()],
    "speed": [speed()],
    "head-roles": [roles(), roles("shop/model-b", seed=1)],
    "relative-positions": [roles(), roles("shop/model-b", seed=1)],
    "syntactic-heads": [roles(), roles("shop/model-b", seed=1)],
    "attention": [attention()],
    "compensation": [compensation()],
}
