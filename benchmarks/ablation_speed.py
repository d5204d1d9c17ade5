"""One head out for every head: fast against the obvious loop of one full run per head, same batches, same numbers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import psutil
import torch
from torch import nn

import headcount as hc
from benchmarks import laboratory
from benchmarks.gradient_score import nll
from benchmarks.models import bert_base, tokens
from benchmarks.row import Row
from headcount.scores.variants import measure, one_out
from headcount.timing import interleave
from headcount.training.transformer import new_translation_model

Result = TypeVar("Result")
STEPS, SENTENCES, REPEATS = 600, 24, 2  # a naive round takes minutes


def rows() -> Iterator[Row]:
    translator = _translator()
    for metric, least in (("loss", 1.7), ("bleu", 3.0)):
        data = laboratory.task("test", SENTENCES, metric=metric)
        yield _row(f"6+6 layers of 8 heads, translation, by {metric}", translator, data, least)
    model = bert_base()
    batch = {**tokens(8, 64), "labels": torch.arange(8) % 2}
    yield _row("BERT-base, 12 x 12 heads, 8 x 64, by loss", model, hc.task.of([batch], nll=nll), 1.75)


def _row(name: str, model: nn.Module, task: Any, least: float) -> Row:
    variants, found, peaks = one_out(model), {}, {}

    def work(way: str) -> Callable[[], None]:
        def run() -> None:
            found[way], peaks[way] = with_peak(lambda: measure(model, task, variants, fast=way == "fast"))

        return run

    times = interleave({way: work(way) for way in ("fast", "naive")}, repeats=REPEATS, warmup=0)
    same = np.isclose(found["fast"].variants, found["naive"].variants, rtol=1e-5, atol=1e-8).mean()
    memory = ", ".join(f"{way} {peak / 2**20:.0f} MiB" for way, peak in sorted(peaks.items()))
    note = f"{len(variants)} heads; {same:.2%} of the statistics equal; peak memory above the start: {memory}"
    seconds = {way: times.median(way) for way in times.seconds}
    return Row(f"one head out, {name}", times.ratio("naive", "fast"), seconds, at_least=least, note=note)


def with_peak(work: Callable[[], Result]) -> tuple[Result, int]:
    """What the work gives, and the most memory of the process above what it held before, in bytes."""
    process, done, peak = psutil.Process(), threading.Event(), 0
    start = process.memory_info().rss

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, process.memory_info().rss - start)
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return work(), peak
    finally:
        done.set()
        watcher.join()


def _translator() -> nn.Module:
    size = replace(laboratory.TINY.size, encoder_layers=6, decoder_layers=6, width=64, inner=128)
    model = new_translation_model(size, laboratory.tokenizer(), seed=0)
    recipe = replace(laboratory.TINY.recipe, steps=STEPS, cooldown=STEPS // 3)
    laboratory.train(model, laboratory.task("train", 20_000), recipe)
    return model.eval()
