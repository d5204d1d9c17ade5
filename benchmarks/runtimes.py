"""Half of the heads, in whole groups, in every runtime: what is saved in time beside what is saved in work and bytes.

A Llama of BERT-base's shapes with random weights; for CTranslate2 the class that `headcount train` makes.
HEADCOUNT_BENCH_REPEATS, HEADCOUNT_BENCH_LENGTH and HEADCOUNT_BENCH_LAYERS make it shorter.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import headcount as hc
from benchmarks import laboratory
from benchmarks.resident import resident_bytes
from benchmarks.row import Row
from headcount.exports.load_export import load_export
from headcount.exports.measured import files_of
from headcount.statistics import Interval, median_interval
from headcount.studies.speed import Subject, TorchSubject
from headcount.timing import Times, interleave

REPEATS = int(os.environ.get("HEADCOUNT_BENCH_REPEATS", "15"))
LENGTH = int(os.environ.get("HEADCOUNT_BENCH_LENGTH", "256"))  # tokens of the prompt
WRITTEN = 16
CONTEXTS = (2048, 32768)  # tokens for which the cache is stated
LAYERS = int(os.environ.get("HEADCOUNT_BENCH_LAYERS", "12"))
HEADS, WIDTH, VOCABULARY = 12, 768, 8192
DECODER_RUNTIMES = {"onnx": ".onnx", "openvino": "", "gguf": ".gguf"}


@dataclass(frozen=True)
class Versions:
    """One model in one runtime, whole and halved."""

    paths: dict[str, Path]
    subjects: dict[str, Subject]


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _measure(_llama(), _byte_tokenizer(), DECODER_RUNTIMES, Path(folder), LENGTH)
    with tempfile.TemporaryDirectory() as folder:
        yield from _measure(laboratory.new_model(), laboratory.tokenizer(), {"ctranslate2": ""}, Path(folder), 64)


def _measure(model: Any, tokenizer: Any, runtimes: dict[str, str], folder: Path, length: int) -> Iterator[Row]:
    sites = hc.locate(model)
    removed = [f"{site.kind}.{site.layer}.{index}" for site in sites for index in site.heads[site.num_heads // 2 :]]
    sizes = {"full": model, "half": hc.remove(model, sites.mask(off=removed), verify=False)}
    costs = {name: hc.cost(version, length=length) for name, version in sizes.items()}
    flops = {name: cost.flops or 0 for name, cost in costs.items()}
    weights = {name: 4 * cost.parameters + cost.cache_bytes for name, cost in costs.items()}
    versions = {"pytorch": _saved(sizes, tokenizer, folder)}
    versions |= {name: _exported(sizes, tokenizer, name, suffix, folder) for name, suffix in runtimes.items()}
    what_runs = {
        (runtime, size): version.subjects[size].works(1, length, WRITTEN)
        for runtime, version in versions.items()
        for size in sizes
    }
    for what, spent, tokens in (("reading", flops, length), ("writing", weights, WRITTEN)):
        work = {f"{runtime} {size}": works[what] for (runtime, size), works in what_runs.items()}
        times = interleave(work, repeats=REPEATS, warmup=1)
        for runtime in versions:
            yield _time_row(f"{type(model).__name__}, {runtime}", runtime, times, what, spent, tokens)
    for runtime, version in versions.items():
        yield from _size_rows(f"{type(model).__name__}, {runtime}", version)


def _time_row(title: str, runtime: str, times: Times, what: str, spent: dict[str, int], tokens: int) -> Row:
    """The time that is saved as a share of the work or the bytes that are saved."""
    full, half = (times.seconds[f"{runtime} {size}"] for size in ("full", "half"))
    predicted = 1 - spent["half"] / spent["full"]
    ratio = times.ratio(f"{runtime} full", f"{runtime} half")
    rates = {size: tokens / times.median(f"{runtime} {size}") for size in ("full", "half")}
    unit = "FLOPs" if what == "reading" else "bytes of weights and cache"
    return Row(
        f"{title}, {what}: time saved as a share of the {unit} saved",
        median_interval((1 - half / full) / predicted),
        {size: times.median(f"{runtime} {size}") for size in ("full", "half")},
        at_least=0.85,
        note=f"{unit} saved {predicted:.1%}; {rates['full']:.1f} -> {rates['half']:.1f} tokens/s, full:half "
        f"{ratio.value:.3f} ({ratio.low:.3f} - {ratio.high:.3f})",
    )


def _size_rows(title: str, version: Versions) -> Iterator[Row]:
    disk = {size: sum(file.stat().st_size for file in files_of(path)) for size, path in version.paths.items()}
    memory = {size: resident_bytes(path) for size, path in version.paths.items()}
    for what, of_size in (("bytes on disk", disk), ("resident memory", memory)):
        share = of_size["half"] / of_size["full"]
        note = f"{of_size['full'] / 1e6:.1f} -> {of_size['half'] / 1e6:.1f} MB"
        yield Row(f"{title}: {what}, half:full", Interval(share, share, share), {}, at_most=1.0, note=note)
    for context in CONTEXTS:
        bytes_of = {size: subject.size(context).cache_bytes for size, subject in version.subjects.items()}
        if not bytes_of["full"] or bytes_of["half"] is None:
            continue
        share = bytes_of["half"] / bytes_of["full"]
        note = f"{bytes_of['full'] / 1e6:.1f} -> {bytes_of['half'] / 1e6:.1f} MB"
        yield Row(
            f"{title}: cache at {context} tokens, half:full",
            Interval(share, share, share), {}, at_least=0.5, at_most=0.5, note=note,
        )  # fmt: skip


def _saved(sizes: dict[str, Any], tokenizer: Any, folder: Path) -> Versions:
    paths = {size: folder / f"pytorch-{size}" for size in sizes}
    for size, model in sizes.items():
        hc.save(model, paths[size], tokenizer=tokenizer)
    return Versions(paths, {size: TorchSubject(model) for size, model in sizes.items()})


def _exported(sizes: dict[str, Any], tokenizer: Any, runtime: str, suffix: str, folder: Path) -> Versions:
    paths = {size: folder / f"{runtime}-{size}{suffix}" for size in sizes}
    subjects: dict[str, Subject] = {}
    for size, model in sizes.items():
        hc.export(model, runtime, paths[size], tokenizer=tokenizer, check=False)
        subject = load_export(paths[size], threads=torch.get_num_threads())
        if subject is None:
            raise RuntimeError(f"{paths[size]} was not written")
        subjects[size] = subject
    return Versions(paths, subjects)


def _llama() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=2048, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=max(CONTEXTS),
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def _byte_tokenizer() -> Any:
    """Bytes and a single merge, which llama.cpp asks for: GGUF holds a vocabulary."""
    tokens = ["<s>", "</s>", "th", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    rules = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, [("t", "h")]))
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=rules, bos_token="<s>", eos_token="</s>")
