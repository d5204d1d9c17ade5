"""Small records with made-up numbers, one for each study that has figures: what the report is tested on."""

from __future__ import annotations

import numpy as np

from headcount.record import Record, Signature


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
        }  # fmt: skip
    return found


def ablation(model: str = "shop/model-a", seed: int = 0) -> Record:
    correlation = {"r": 0.6, "low": 0.2, "high": 0.8, "p": 0.01}
    parts = {
        "metric": "BLEU", "higher_is_better": True, "value": 30.0, "alpha": 0.01,
        "one_out": effects(TRANSLATION, seed),
        "summary": {"heads": 15, "significant": 5, "significant_corrected": 4},
        "other": {
            "value": 20.0, "pearson": correlation, "spearman": correlation, "one_out": effects(TRANSLATION, seed + 1),
        },
    }  # fmt: skip
    return Record("ablate", Signature(model), parts)


# For each figure the records it is tried on.
SAMPLES = {
    "ablation-map": [ablation()],
    "ablation-histogram": [ablation()],
    "transfer": [ablation()],
}
