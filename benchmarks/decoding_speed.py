"""Translating against a plain loop over `model.generate`: same model, as many sentences in a batch on average."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from benchmarks import laboratory
from benchmarks.row import Row
from headcount.tasks.translation.decoding import by_length, decode
from headcount.timing import interleave

SENTENCES, ROWS, STEPS = 400, 32, 700


def rows() -> Iterator[Row]:
    model, data = laboratory.new_model(), laboratory.task("test", SENTENCES)
    recipe = replace(laboratory.TINY.recipe, steps=STEPS, cooldown=STEPS // 3)
    laboratory.train(model, laboratory.task("train", 20_000), recipe)
    model.eval()
    padding = data.tokenizer.pad_token_id
    tokens = _tokens(data)
    for beams in (1, 4):
        work = {
            "headcount": lambda beams=beams: decode(
                model, data.source_ids, padding=padding, beams=beams, tokens=tokens * beams
            ),
            "a loop over generate": lambda beams=beams: _plain(model, data, beams),
        }
        times = interleave(work, repeats=7, warmup=1)
        seconds = {name: times.median(name) for name in times.seconds}
        ratio = times.ratio("a loop over generate", "headcount")
        same = _same(model, data, beams, tokens)
        note = f"{SENTENCES} sentences, {ROWS} in a batch; {same:.1%} of the output identical"
        yield Row(f"sentences/s, {beams} beam{'s' * (beams > 1)}", ratio, seconds, at_least=1.5, note=note)


def _tokens(data: Any) -> int:
    """The size of batch at which there are as many batches as in the plain loop."""
    return next(
        size
        for size in range(200, 5000, 10)
        if sum(1 for _ in by_length(data.source_ids.lengths, size)) <= -(-SENTENCES // ROWS)
    )


def _plain(model: Any, data: Any, beams: int) -> list[list[int]]:
    found: list[list[int]] = []
    options: dict[str, Any] = {"num_beams": beams, "length_penalty": 0.6} if beams > 1 else {"num_beams": 1}
    for start in range(0, SENTENCES, ROWS):
        batch = data.tokenizer(data.source[start : start + ROWS], padding=True, return_tensors="pt")
        with torch.no_grad():
            written = model.generate(**batch, do_sample=False, max_length=None, max_new_tokens=100, **options)
        found += written.tolist()
    return found


def _same(model: Any, data: Any, beams: int, tokens: int) -> float:
    ids = decode(model, data.source_ids, padding=data.tokenizer.pad_token_id, beams=beams, tokens=tokens * beams)
    # What never ends is cut: at 100 tokens by the plain loop, at a length of its own by headcount.
    plain = [
        row[: len(own)] if len(row) > len(own) else row
        for row, own in zip(_plain(model, data, beams), ids, strict=True)
    ]
    ours, theirs = (data.tokenizer.batch_decode(found, skip_special_tokens=True) for found in (ids, plain))
    return sum(one == other for one, other in zip(ours, theirs, strict=True)) / SENTENCES
