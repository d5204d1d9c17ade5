"""What a mask costs: BERT-base shape with and without one, forward alone and forward with backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

import headcount as hc
from benchmarks.models import bert_base, tokens
from benchmarks.row import Row
from headcount.timing import interleave


def rows() -> Iterator[Row]:
    model, batch = bert_base(), tokens(4, 128)
    sites = hc.locate(model)
    mask = sites.mask(off=[head for head in sites.heads if head.index % 2])  # work to do in every layer

    def forward() -> None:
        with torch.no_grad():
            model(**batch)

    def backward() -> None:
        model(**batch).logits.sum().backward()
        model.zero_grad()

    def under_mask(run: Callable[[], None]) -> Callable[[], None]:
        def masked() -> None:
            with hc.masked(model, mask):
                run()

        return masked

    for name, run in (("forward", forward), ("forward and backward", backward)):
        times = interleave({"masked": under_mask(run), "plain": run}, repeats=30)
        seconds = {key: times.median(key) for key in times.seconds}
        yield Row(f"mask, {name}, BERT-base 4 x 128", times.ratio("masked", "plain"), seconds, at_most=1.03)
