"""Load test: the time to resume a trade-off with a thousand finished points."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import headcount as hc
import records
import zoo
from headcount.studies.plan import Data, Plan
from headcount.studies.point import PointFile, PointInputs
from headcount.studies.tradeoff import tradeoff
from tokens import sentences, word_tokenizer

MOST = 5.0  # maximum CPU time in seconds
_WAYS = (
    "l0", "l0/distilled", "subset", "random", "rank-gradient", "rank-confidence", "rank-magnitude", "rank-ablation",
    "fisher/tuned", "greedy/tuned",
)  # fmt: skip


def resumed(examples: int = 300) -> dict[str, float]:
    """Return the number of points, the number of examples and the CPU time in seconds to rebuild the record."""
    model = zoo.build("gpt2")
    tasks = [
        hc.task("language-modelling", texts=sentences(size, seed=size), tokenizer=word_tokenizer())
        for size in (8, 9, examples)
    ]
    data, plan = Data(*tasks), Plan(tuple(range(1, 11)), _WAYS, seeds=tuple(range(10)))
    arms = plan.arms(len(hc.locate(model).heads))
    statistics = tasks[-1].quality(model).statistics
    draw, sample = np.random.default_rng(0), records.tradeoff().parts.points[0]
    with tempfile.TemporaryDirectory() as folder:
        work = PointInputs(model, data, plan, Path(folder))
        for arm in arms:
            point = replace(sample, way=arm.way.name, keep=arm.keep, seed=arm.seed)
            rows = (statistics * draw.uniform(0.9, 1.1, statistics.shape)).tolist()
            PointFile(point, tuple(map(tuple, rows))).write(work.file(arm))
        begin = time.process_time()
        record = tradeoff(model, data, plan, folder=Path(folder))
        seconds = time.process_time() - begin
    if record.parts.unfinished or len(record.parts.points) != len(arms):
        raise RuntimeError(f"{record.parts.unfinished} of {len(arms)} points were not read")
    return {"points": len(arms), "examples": examples, "seconds": round(seconds, 2)}
