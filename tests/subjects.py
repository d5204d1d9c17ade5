"""Records of whole models with made-up numbers, of any number of layers and heads: what the page is tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from records import MEASURED_ON, corpus, difference, held_role, measured, pruning, quality, size, summary, typed

Sites = dict[str, int]  # site -> heads


def even(layers: int, heads: int, kinds: tuple[str, ...] = ("encoder", "decoder", "cross")) -> Sites:
    return {f"{kind}.{layer}": heads for kind in kinds for layer in range(layers)}


RAGGED: Sites = {"encoder.0": 4, "encoder.1": 1, "encoder.3": 7, "decoder.0": 2, "cross.0": 5}
ONE_LAYER: Sites = {"encoder.0": 4}


def names(sites: Sites) -> list[str]:
    return [f"{site}.{index}" for site, count in sites.items() for index in range(count)]


def ablation(sites: Sites, model: str = "shop/model-a", seed: int = 0) -> Record:
    random = np.random.default_rng(seed)
    effects = {}
    for head, change in zip(names(sites), random.normal(-0.5, 1, len(names(sites))).tolist(), strict=True):
        sure = abs(change) > 1
        effects[head] = {
            "value": 30 + change, "difference": change, "low": change - 0.4, "high": change + 0.4,
            "p": 0.0002 if sure else 0.3, "corrected": 0.004 if sure else 1.0, "examples": 20,
        }  # fmt: skip
    best = {site: {"head": f"{site}.0", **effects[f"{site}.0"]} for site in sites}
    parts = {
        "metric": "BLEU", "higher_is_better": True, "distance": False, "value": 30.0, "alpha": 0.01, "one_out": effects,
        "all_but_one": best, "summary": summary(len(effects)),
    }  # fmt: skip
    return typed("ablate", Signature(model, "a1b2c3", "d4e5f6", arguments={"metric": "BLEU"}), parts)


def score(sites: Sites, method: str = "gradient", model: str = "shop/model-a", seed: int = 1) -> Record:
    values = dict(zip(names(sites), np.random.default_rng(seed).random(len(names(sites))).tolist(), strict=True))
    order = sorted(values, key=lambda head: -values[head])
    parts = {
        "method": method, "scores": values, "ranks": {head: rank for rank, head in enumerate(order, start=1)},
        "low": {head: value - 0.1 for head, value in values.items()},
        "high": {head: value + 0.1 for head, value in values.items()},
    }  # fmt: skip
    return typed("score", Signature(model, "a1b2c3", "d4e5f6", arguments={"score": method}), parts)


def curves(sites: Sites, model: str = "shop/model-a", seed: int = 2) -> Record:
    heads = names(sites)
    kinds = list(dict.fromkeys(head.split(".")[0] for head in heads))

    def line(order: str, number: int, some: list[str], line_seed: int | None = None) -> dict[str, Any]:
        going = [head for head in np.random.default_rng(seed + number).permutation(heads) if head.split(".")[0] in some]
        points = []
        for step in range(6):
            removed = round(step * len(going) / 5)
            gone = set(going[:removed])
            value = 30 * (1 - (removed / len(going)) ** 2)
            points.append(
                {
                    "removed": removed, "share": removed / len(going), "value": value, "low": value - 1,
                    "high": value + 1, "kept_by_kind": {}, "heads": [head for head in heads if head not in gone],
                }
            )  # fmt: skip
        return {"order": order, "kinds": some, "seed": line_seed, "points": points}

    parts = {
        "metric": "BLEU", "higher_is_better": True, "value": 30.0, "num_heads": len(heads), "measured_on": MEASURED_ON,
        "against_random": {},
        "curves": [line("gradient", 0, kinds), line("ablation", 1, kinds), line("random", 2, kinds, 0)],
        "leads": [],
    }  # fmt: skip
    if len(kinds) > 1:
        parts["by_kind"] = [line("gradient", 3 + number, [kind]) for number, kind in enumerate(kinds)]
    return typed("curves", Signature(model, "a1b2c3", "d4e5f6"), parts)


def evidence(role: str, label: str, value: float, *, holds: bool = True) -> dict[str, Any]:
    return {
        "role": role, "label": label, "value": value, "baseline": 0.4, "threshold": 0.5, "low": value - 0.05,
        "high": value + 0.05, "trials": 100, "holds": holds,
    }  # fmt: skip


def roles(sites: Sites, model: str = "shop/model-a") -> Record:
    heads = names(sites)
    held = [
        [evidence("positional", "-1", 0.95)],
        [evidence("syntactic", "obj v->o", 0.7), evidence("delimiter", "end", 0.6)],
        [evidence("rare", "two rarest", 0.6)],
        [],
    ]
    own = {head: held[place % len(held)] for place, head in enumerate(heads)}
    few = {**evidence("syntactic", "advmod a->v", 1.0), "trials": 2, "holds": None}
    parts: dict[str, Any] = {
        "confidence": {head: {"value": 0.5, "low": 0.4, "high": 0.6} for head in heads},
        "roles": own,
        "evidence": {head: [*some, evidence("induction", "x", 0.1, holds=False), few] for head, some in own.items()},
        "best": [
            {"kind": "encoder", "head": heads[0], "held_out": True, **some}
            for some in (evidence("syntactic", "nsubj v->s", 0.6), few)
        ],
        "relative": {"nsubj v->s": {"-1": 20, "1": 8}},
        **corpus(heads),
        "persons": {"1": 1, "2": 1, "3": 8},
    }
    changes = {"difference": -0.4, "low": -0.6, "high": -0.2, "p": 0.001}
    played = {
        "role": "positional", "label": "-1", "off": changes, "played": changes, "alone": changes,
        "share_kept": {"value": 0.8, "low": 0.6, "high": 0.9},
    }  # fmt: skip
    parts["played"] = {"metric": "loss", "value": 2.0, "by_head": {heads[0]: played}}
    parts["paper"]["positional"] |= {"labels": {heads[0]: "-1"}, "confidence": {heads[0]: 0.9}, "above": 1}
    return typed("roles", Signature(model, "a1b2c3", arguments={"data": "grammar dev"}), parts)


def examples(sites: Sites, tokens: list[str], model: str = "shop/model-a") -> Record:
    count = len(tokens)
    rows = [" ".join("0.7" if key == (query + 1) % count else "0.1" for key in range(count)) for query in range(count)]
    kinds = list(dict.fromkeys(site.split(".")[0] for site in sites))
    one = {
        "tokens": {"source": tokens},
        "sides": {kind: ["source", "source"] for kind in kinds},
        "tree": {
            "side": "source", "words": [[place] for place in range(count)],
            "parents": [-1, *range(count - 1)], "relations": ["root", *["obj"] * (count - 1)],
        },
        "attention": dict.fromkeys(names(sites), rows),
    }  # fmt: skip
    return typed("examples", Signature(model), {"examples": [one], "too_long": 0})


def bench(total: int, model: str = "shop/model-a") -> Record:
    rows = [
        {
            "model": name, "what": what, "batch": batch, "length": 32, "seconds": 0.1, "shortest": 0.09,
            "longest": 0.12, "per_second": 10.0 * batch, "faster": faster, "low": faster - 0.1, "high": faster + 0.1,
        }
        for what in ("reading", "writing")
        for batch in (1, 16)
        for name, faster in ((model, 1.0), ("shop/small", 1.25))
    ]  # fmt: skip
    sizes = {model: size(total), "shop/small": size(total // 2)}
    return typed("bench", Signature(model), {"rows": rows, "models": sizes, "threads": 2, "device": "cpu"})


def pruned(sites: Sites, model: str = "shop/model-a") -> Record:
    heads = names(sites)
    ends = [measured(30.0), measured(28.0)]
    steps = [
        {
            "value": end["value"], "low": end["low"], "high": end["high"], "removed": removed,
            "share": removed / len(heads), "kept_by_kind": {}, "heads": heads[removed:],
        }
        for removed, end in zip((0, 2), ends, strict=True)
    ]  # fmt: skip
    return typed("prune", Signature(model), pruning(heads[:2], heads[2:], curve=steps, before=ends[0], after=ends[1]))


def sweep(sites: Sites, model: str = "shop/model-a") -> Record:
    heads = names(sites)
    quality = {"before": measured(30.0), "after": measured(29.0)}
    point = {
        "kept_by_kind": {"encoder": 2}, "heads": heads[:2], "quality": quality, "settled": 0.9,
        "removed_heads": heads[2:],
    }  # fmt: skip
    return typed("prune-sweep", Signature(model), {"sweep": {"0.1": point}, "method": "l0", "elsewhere": []})


def tradeoff(sites: Sites, model: str = "shop/model-a", *, pruned: str = "heads of all kinds") -> Record:
    heads = names(sites)
    kinds = list(dict.fromkeys(head.split(".")[0] for head in heads))
    of = {kind: sum(head.split(".")[0] == kind for head in heads) for kind in kinds}
    first = [head for head in heads if head.split(".")[0] == kinds[0]]
    pool = heads if pruned == "heads of all kinds" else first

    def kept(some: list[str]) -> dict[str, int]:
        return {kind: sum(head.split(".")[0] == kind for head in some) for kind in kinds}

    points = []
    for way in ("l0", "rank-gradient/untuned", "scratch"):
        for keep in (1, 2):
            left = [head for head in heads if head in pool[:keep] or head not in pool]
            points.append(
                {
                    "way": way, "keep": keep, "seed": 0, "after": measured(30 - 10 / keep), "cut": None,
                    "kept_by_kind": kept(left), "heads": left, "steps": 0 if "untuned" in way else 600,
                    "seconds": {"choosing": 1.0, "tuning": 9.0, "total": 10.0}, "command": "headcount prune",
                    "roles": {head: [held_role("syntactic", "obj v->o", 0.7)] for head in left if head in first},
                }
            )  # fmt: skip
    changes = {
        "num_heads": 2, "same": 1, "gained": 1, "lost_roles": 0, "exchanged": 0,
        "by_role": {"positional": {"whole": 2, "left": 1}}, "functions": {"whole": 2, "left": 1},
    }  # fmt: skip
    gate = {"log_a": 0.0, "beta": 0.5, "low": -0.1, "high": 1.1, "zero": 0.23, "one": 0.23, "mean": 0.5}
    compared = [{"way": "l0", "keep": 2, "seeds": [0, 1], "lost": difference(-1.0)}]
    parts: dict[str, Any] = {
        "metric": "BLEU", "higher_is_better": True, "measured_on": MEASURED_ON, "whole": measured(30.0),
        "gated": len(pool), "of": of, "heads_by_site": dict(sites), "pruned": pruned, "points": points,
        "against": "scratch", "compared": compared, "steps": {"tuned": 600, "scratch": 2400}, "unfinished": 0,
        "seconds_by_way": {"l0": 10.0}, "whole_roles": {head: [held_role("positional", "-1", 0.9)] for head in first},
        "looked": {"sentences": 20, "trees": 20, "fingerprint": "x"}, "hard_concrete": [gate],
        "drift": [{"way": "l0", "keep": keep, "seed": 0, "changes": changes} for keep in (1, 2)],
    }  # fmt: skip
    if pruned == "heads of all kinds" and len(kinds) > 1:
        own = {"way": "l0", "keep": 2, "seed": 0, "kept_by_kind": kept(points[1]["heads"])}
        parts["all_kinds"] = [{**own, "trained": measured(25.0), "scratch": measured(24.0)}]
    return typed("tradeoff", Signature(model), parts)


def rules(sites: Sites, model: str = "shop/model-a") -> Record:
    values = {head: 0.1 * place for place, head in enumerate(names(sites))}
    spearman = {"all": {"r": 0.7, "low": 0.5, "high": 0.8, "p": 0.01}}
    parts = {
        "by_rule": {"ding": values, "attnlrp": values}, "conservation": {},
        "agreements": [{"rule": "ding", "other": "attnlrp", "spearman": spearman}], "refused": {},
    }  # fmt: skip
    return typed("rules", Signature(model), parts)


def agreement(sites: Sites, model: str = "shop/model-a") -> Record:
    correlation = {"all": {"r": 0.7, "low": 0.5, "high": 0.8, "p": 0.01}}
    overlap = [{"share": share, "num_heads": 1, "overlap": 0.5, "chance": share} for share in (0.1, 0.25, 0.5)]
    change = {"difference": -1.0, "low": -2.0, "high": -0.5, "p": 0.01}
    row = {"share": 0.5, "removed": 2, "value": 20.0, "change": change, "against_ablation": change}
    parts = {
        "metric": "BLEU", "higher_is_better": True, "num_heads": len(names(sites)), "measured_on": MEASURED_ON,
        "by_method": {}, "spearman": {"gradient": correlation}, "overlap": {"gradient": overlap},
        "pruning": {"ablation": [row], "gradient": [row]}, "refused": {},
    }  # fmt: skip
    return typed("agreement", Signature(model), parts)


def replacement(sites: Sites, model: str = "shop/model-a") -> Record:
    effects = {
        head: {
            "value": 1.0, "difference": 0.1 * place, "low": 0.0, "high": 1.0, "p": 0.01, "corrected": 0.02,
            "examples": 20,
        }
        for place, head in enumerate(names(sites))
    }  # fmt: skip
    agreement = {"r": 0.7, "low": 0.5, "high": 0.8, "p": 0.01}
    parts = {
        "metric": "loss", "higher_is_better": False, "value": 1.0, "alpha": 0.01,
        "effects": dict.fromkeys(("zero", "mean", "resample"), effects),
        "significant": {"zero": 2, "mean": 1, "resample": 1},
        "rank_correlations": dict.fromkeys(("zero / mean", "zero / resample", "mean / resample"), agreement),
    }  # fmt: skip
    return typed("replacement", Signature(model), parts)


def compensation(model: str = "shop/model-a") -> Record:
    def points(height: float) -> list[dict[str, Any]]:
        return [
            {
                "removed": count, "share": count / 20, "value": height * count, "low": height * count * 0.9,
                "high": height * count * 1.1, "seconds": 2.0, "removed_heads": [],
            }
            for count in (2, 4)
        ]  # fmt: skip

    ratios = {"lstsq/none": {"value": 0.4, "low": 0.3, "high": 0.5}}
    parts = {
        "metric": "BLEU", "num_heads": 20, "order": "gradient", "measured_on": MEASURED_ON,
        "full": {"loss": 3.0, "quality": quality(30.0)}, "course": [{"removed": 4, "quality": quality(28.0)}],
        "compensations": {"none": points(0.3), "lstsq": points(0.1)},
        "at": {"removed": 4, "quality": {"none": quality(28.0), "lstsq": quality(29.0)}, "ratios": ratios},
    }  # fmt: skip
    return typed("compensation", Signature(model), parts)


def training(model: str = "shop/model-a") -> Record:
    epochs = [{"epoch": number, "step": 10 * number, "measures": {"loss": 3.0 / number}} for number in (1, 2)]
    parts = {
        "task": "translation", "candidate": "epoch 2", "candidates": {}, "epochs": epochs, "steps": 20, "seconds": 90.0,
        "texts": {"train": 100, "dev": 10},
    }  # fmt: skip
    return typed("train", Signature(model), parts)


def explored(model: str = "shop/model-a") -> Record:
    parts = {
        "architecture": "BertForMaskedLM", "objective": "masked-language-modelling", "measured_by": "masked words",
        "because": "", "looked_at": "12 sentences", "gradient_on": "8 texts", "one_out_on": "4 texts",
        "counted_in": "9 other sentences",
    }  # fmt: skip
    return typed("explore", Signature(model, "a1b2c3"), parts)


def combined(records: list[Record], model: str = "shop/model-a", *, missing: dict[str, str] | None = None) -> Record:
    inside = {f"{number}-{record.study}": record for number, record in enumerate(records)}
    return Record("combined", Signature(model), Combined("all", inside, missing or {}, {}))


def specialisation(model: str = "shop/model-a") -> Record:
    """Two models of four heads; the positional one is needed and kept."""
    from headcount.record.codec import decode
    from headcount.record.results.specialisation import ModelRow
    from headcount.studies.specialisation import pooled

    best = {
        **evidence("positional", "-1", 0.97), "head": "encoder.0.0", "head_confidence": 0.9, "has_role": True,
    }  # fmt: skip
    lost = {"difference": -0.2, "low": -0.4, "high": 0.1, "p": 0.3}
    row = {
        "weights": "a1b2c3", "measured_on": MEASURED_ON, "metric": "BLEU",
        "unpruned": {"value": 98.0, "low": 97.5, "high": 98.4},
        "without": {"num_heads": 0, "value": 60.0, "lost": lost},
        "pruned": {"num_heads": 1, "value": 97.8, "lost": lost}, "best_of_roles": [best],
        "by_head": {
            f"encoder.0.{number}": {
                "role_names": [] if number else ["positional"], "labels": [], "head_confidence": 0.9,
                "at_neighbour": 1 / (1 + number), "loss_added": 0.01 if number else 0.3, "survives": not number,
            }
            for number in range(4)
        },
    }  # fmt: skip
    models = {f"{model}-{number}": decode(ModelRow, row, source="the sample") for number in (0, 1)}
    return Record("specialisation", Signature(model), pooled(models))


def ledger(model: str = "shop/model-a") -> Record:
    """A claim of each verdict, and one without a number."""
    row = {
        "number": "V1", "paper": "voita2019", "claim": "Heads are <few>.", "where": "section 4", "statistic": "share",
        "value": 0.3, "low": 0.1, "high": 0.5, "models": 1, "runs": 1, "holds": True, "detail": "",
        "changed_by": "more models",
    }  # fmt: skip
    unmeasured = {"value": None, "low": None, "high": None, "models": 0, "runs": 0, "detail": "no record"}
    verdicts = [
        row, {**row, "number": "V2", "holds": False, "models": 3, "runs": 9},
        {**row, "number": "M1", "paper": "michel2019", "holds": None, **unmeasured},
    ]  # fmt: skip
    return typed("ledger", Signature(model), {"verdicts": verdicts})


COST: dict[str, Any] = {
    "length": 128, "parameters": 134_515_008, "flops": 25_000_000_000, "cache_bytes": 5_900_000,
    "kinds": {kind: {"num_heads": 72, "parameters": 10**7, "flops": 10**9} for kind in ("encoder", "decoder", "cross")},
}  # fmt: skip


def inspection(model: str = "shop/model-a", *, heads: int = 4, sites: Sites | None = None) -> Record:
    """sites: by default 12 layers of a decoder, some of which lost heads."""
    left = sites or {f"decoder.{layer}": heads - layer % 3 for layer in range(12)}
    rows = [
        {"site": site, "kind": site.split(".")[0], "layer": int(site.split(".")[1]), "indices": list(range(count)),
         "total": max(left.values()), "head_dim": 64, "kv_heads": 3, "family": "llama", "path": f"layers.{site}",
         "parameters": 10**6, "parameters_per_head": 147_456, "obstacle": None}
        for site, count in left.items()
    ]  # fmt: skip
    return typed("inspect", Signature(model), {"architecture": "LlamaModel", "sites": rows, "cost": COST})


def evaluation(model: str = "shop/model-a") -> Record:
    parts = {
        "task": "translation", "quality": quality(30.0), "measures": {"BLEU": 30.0, "token accuracy": 0.61},
        "examples": 2, "columns": ["a", "b"], "statistics": [[1.0, 2.0], [3.0, 4.0]],
        "settings": {"BLEU": "case:mixed"},
    }  # fmt: skip
    return typed("evaluate", Signature(model, arguments={"data": "grammar test"}), parts)


def everything(sites: Sites, model: str = "shop/model-a", seed: int = 0) -> list[Record]:
    """All that one model can have."""
    return [
        ablation(sites, model, seed), score(sites, "gradient", model, seed + 1), curves(sites, model),
        roles(sites, model),
        examples(sites, ["the", "cat", "sees", "me"], model), bench(len(names(sites)), model), pruned(sites, model),
        sweep(sites, model), tradeoff(sites, model, pruned="encoder heads"), tradeoff(sites, model),
        rules(sites, model), replacement(sites, model), agreement(sites, model), compensation(model), training(model),
        explored(model), specialisation(model), inspection(model, sites=sites), evaluation(model), ledger(model),
    ]  # fmt: skip
