"""What removal brings: half of BERT-base's heads gone, against the same network built narrow, and the full one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import nn

import headcount as hc
from benchmarks.models import HEADS, LAYERS, bert_base, narrow_bert, tokens
from benchmarks.row import Row
from headcount.statistics import median_interval
from headcount.timing import interleave

BATCH, LENGTH = 16, 128


def rows() -> Iterator[Row]:
    full, batch = bert_base(), tokens(BATCH, LENGTH)
    sites = hc.locate(full)
    keep = random.Random(0).sample(sites.heads, k=LAYERS * HEADS // 2)  # uneven over the layers
    pruned = hc.remove(full, sites.mask(keep=keep))
    kept = Counter(head.layer for head in keep)
    narrow = narrow_bert({layer: kept[layer] for layer in range(LAYERS)})

    def forward(model: nn.Module) -> Callable[[], None]:
        def run() -> None:
            with torch.no_grad():
                model(**batch)

        return run

    times = interleave({"pruned": forward(pruned), "built narrow": forward(narrow), "full": forward(full)}, repeats=24)
    half = f"half of the heads removed, BERT-base {BATCH} x {LENGTH}"
    seconds = {name: times.median(name) for name in times.seconds}
    yield Row(
        f"{half}: time against the same network built narrow",
        times.ratio("pruned", "built narrow"),
        {name: seconds[name] for name in ("pruned", "built narrow")},
        at_most=1.03,
    )
    before, after = (hc.cost(model, length=LENGTH).flops or 0 for model in (full, pruned))
    predicted = 1 - after / before
    gains = 1 - times.seconds["pruned"] / times.seconds["full"]
    yield Row(
        f"{half}: time saved as a share of the FLOPs saved",
        median_interval(gains / predicted),
        {name: seconds[name] for name in ("pruned", "full")},
        at_least=0.85,
        note=f"FLOPs saved {100 * predicted:.1f}%, time saved {100 * (1 - seconds['pruned'] / seconds['full']):.1f}%",
    )
