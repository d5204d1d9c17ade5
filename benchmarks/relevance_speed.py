"""Relevance of every step of a translation: against one plain backward pass per step, same model, same batch.

Plain is one run and, for each step, a backward pass of the summed top-1 logits: to all parameters, as `backward()`
does; or to the heads' outputs alone, which is the least that could be asked. Memory: twelve batches against one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import psutil
import torch
import transformers
from torch import Tensor, nn

import headcount as hc
from benchmarks.ablation_speed import with_peak
from benchmarks.row import Row
from headcount.corpora.ragged import Ragged
from headcount.sites.running import evaluating
from headcount.statistics import Interval
from headcount.tasks.translation import Translation
from headcount.timing import interleave

BATCH, LENGTH, VOCABULARY, WIDTH, LAYERS = 16, 20, 8000, 256, 3


def rows() -> Iterator[Row]:
    model, task = _model(), _task(BATCH)
    yield _memory(model)  # first: what the process holds on to afterwards would hide what it needs
    (batch,) = task.batches()
    ways: dict[str, Callable[[], Any]] = {
        "relevance": lambda: hc.score("relevance", model, task, target="reference"),
        "to parameters": lambda: _to_parameters(model, task, batch),
        "to heads": lambda: _to_heads(model, task, batch),
    }
    times = interleave(ways, repeats=8)
    said = f"relevance of {LENGTH} steps, {BATCH} x {LENGTH}, {LAYERS}+{LAYERS} layers of 8 heads, width {WIDTH}"
    for plain in ("to parameters", "to heads"):
        seconds = {name: times.median(name) for name in ("relevance", plain)}
        ratio = times.ratio("relevance", plain)
        yield Row(f"{said}, against a backward pass per step {plain}", ratio, seconds, at_most=1.0)


def _memory(model: nn.Module) -> Row:
    peaks, process = {}, psutil.Process()
    before = process.memory_info().rss
    for batches in (1, 12):
        task, held = _task(batches * BATCH), process.memory_info().rss - before
        _, more = with_peak(partial(hc.score, "relevance", model, task, target="reference"))
        peaks[batches] = held + more
    ratio = peaks[12] / max(peaks[1], 1)
    note = ", ".join(f"{batches * BATCH} sentences {peak / 2**20:.0f} MiB" for batches, peak in peaks.items())
    name = "relevance, peak memory above the start: 12 batches against 1, same chunk"
    return Row(name, Interval(ratio, ratio, ratio), {}, at_most=1.3, note=note)


def _model() -> nn.Module:
    torch.manual_seed(0)
    sizes = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "d_model": WIDTH}
    sizes |= {f"{side}_{what}": value for side in ("encoder", "decoder")
              for what, value in (("attention_heads", 8), ("ffn_dim", 4 * WIDTH))}  # fmt: skip
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None, "decoder_start_token_id": 0}
    config = transformers.MarianConfig(vocab_size=VOCABULARY, **sizes, **ids, forced_eos_token_id=None)
    return transformers.MarianMTModel(config).eval()


def _task(sentences: int) -> Translation:
    draw = torch.Generator().manual_seed(0)
    ids = [torch.randint(2, VOCABULARY, (sentences, LENGTH), generator=draw).tolist() for _ in range(2)]
    texts, encoded = [""] * sentences, (Ragged.of(ids[0]), Ragged.of(ids[1]))
    tokenizer = SimpleNamespace(pad_token_id=0)
    return Translation(source=texts, target=texts, tokenizer=tokenizer, encoded=encoded, tokens=BATCH * LENGTH)


def _to_parameters(model: nn.Module, task: Translation, batch: Any) -> None:
    logits_BTV = task.logits(model, batch)
    for logits_B in _top(logits_BTV):
        logits_B.sum().backward(retain_graph=True)
        model.zero_grad()


def _to_heads(model: nn.Module, task: Translation, batch: Any) -> None:
    contexts: list[Tensor] = []
    mask = torch.ones(len(hc.locate(model).heads), requires_grad=True)  # makes the heads' outputs part of the graph
    taps = hc.tapped(model, "outputs", sink=lambda _, context: contexts.append(context))
    with evaluating(model, gradients=True), hc.masked(model, mask), taps:
        logits_BTV = task.logits(model, batch)
    for logits_B in _top(logits_BTV):
        torch.autograd.grad(logits_B.sum(), contexts, retain_graph=True)


def _top(logits_BTV: Tensor) -> Iterator[Tensor]:
    """[B]: the top-1 logits of each step."""
    top_BT1 = logits_BTV.argmax(-1, keepdim=True)
    return (logits_BTV[:, step].gather(-1, top_BT1[:, step]) for step in range(LENGTH))
