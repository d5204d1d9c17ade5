"""What roles cost: confidence and every role in one pass, against a plain eager forward pass over the same batches.

Sentences are tokenized before the clock starts, on both sides; padding them is in both times, the bootstrap in that of
the roles. Memory: the peak that measuring adds to the process, for few and for four times as many sentences.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import torch
from transformers import BertConfig, BertModel

from benchmarks.laboratory import new_model, tokenizer
from benchmarks.row import Row
from headcount.corpora.frequencies import count_tokens
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.tree import Tree
from headcount.head_roles.encoding import Batch, Encoder, batches, windows
from headcount.head_roles.measure import Measurement
from headcount.head_roles.reading import RELATIONS, Reading
from headcount.head_roles.role import roles as members
from headcount.probes.site_masks import site_masks
from headcount.probes.taps import tapped
from headcount.sites.running import eager_attention, evaluating
from headcount.statistics import Interval, Resampling
from headcount.timing import interleave

TOKENS = 4096


def rows() -> Iterator[Row]:
    marks = tokenizer()
    trees = [row.tree for row in Grammar().split("dev")][:512]
    translation, encoder = new_model().eval(), _mini_lm(len(marks))
    for name, model in (
        ("MiniLM shape (6 x 12, 384 wide)", encoder),
        ("tiny translation encoder (3 x 8, 96 wide)", translation),
    ):
        made = _batches(marks, trees)
        times = interleave({"roles": _roles(model, marks, trees, made), "plain": _plain(model, made)}, repeats=15)
        seconds = {key: times.median(key) for key in times.seconds}
        yield Row(
            f"confidence and all roles, {name}, 512 sentences", times.ratio("roles", "plain"), seconds, at_most=1.6
        )
    work = _roles(encoder, marks, trees, _batches(marks, trees))
    work()
    few, many = _peak(work), _peak(lambda: [work() for _ in range(4)])
    ratio = (many + 50) / (few + 50)  # 50 MB: below that the allocator's own noise is all there is
    yield Row(
        "memory of 2048 against 512 sentences",
        Interval(ratio, ratio, ratio),
        {"MB few": few, "MB many": many},
        at_most=1.3,
    )


def _mini_lm(vocabulary: int) -> Any:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    return BertModel(config).eval()


def _batches(marks: Any, trees: list[Tree]) -> list[Batch]:
    encoder = Encoder(marks, longest=256, relations=RELATIONS)
    return [batch for _, sentences in windows(encoder, trees, None) for batch in batches(sentences, TOKENS)]


def _plain(model: Any, made: list[Batch]) -> Callable[[], None]:
    inner = model.get_encoder() if model.config.is_encoder_decoder else model

    def run() -> None:
        with evaluating(model), eager_attention(model):
            for batch in (Batch(batch.rows) for batch in made):
                inner(input_ids=batch.ids_BT, attention_mask=batch.real_BT.long())

    return run


def _roles(model: Any, marks: Any, trees: list[Tree], made: list[Batch]) -> Callable[[], None]:
    frequencies = count_tokens([tree.text for tree in trees], marks)
    chosen = {name: members[name] for name in members}

    def run() -> None:
        work = Measurement(model, marks, chosen, Reading(), frequencies, Resampling())
        with evaluating(model), site_masks(model) as work.masks, tapped(model, "attention", sink=work.see):
            for batch in made:
                work.run(Batch(batch.rows))  # nothing remembered from before
        work.evidence()

    return run


def _peak(work: Callable[[], object]) -> float:
    """Megabytes that the process grows by while it works, watched from another thread."""
    process, stop, seen = psutil.Process(), threading.Event(), [0]
    before = process.memory_info().rss

    def watch() -> None:
        while not stop.is_set():
            seen[0] = max(seen[0], process.memory_info().rss - before)
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        work()
    finally:
        stop.set()
        thread.join()
    return max(0.0, seen[0] / 2**20)
