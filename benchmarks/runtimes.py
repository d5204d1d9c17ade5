"""Half of the heads, in whole groups, in every runtime: what is saved in time beside what is saved in work and bytes.

A Llama of BERT-base's shapes with random weights; for CTranslate2 the class that `headcount train` makes, in the
shapes of its preset `base`. Reading is held against FLOPs, writing against the bytes that each token reads: weights
without the table of embeddings, of an encoder-decoder those of the decoder, and the cache.
HEADCOUNT_BENCH_REPEATS, HEADCOUNT_BENCH_LENGTH and HEADCOUNT_BENCH_LAYERS make it shorter.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from headcount.sites.inputs import example_batch
from headcount.statistics import Interval, median_interval
from headcount.studies.speed import Subject, TorchSubject
from headcount.timing import Times, interleave
from headcount.training.preset import PRESETS
from headcount.training.transformer import new_translation_model

REPEATS = int(os.environ.get("HEADCOUNT_BENCH_REPEATS", "31"))
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
        yield from _measure(_translator(), laboratory.tokenizer(), {"ctranslate2": ""}, Path(folder), min(LENGTH, 64))


def _measure(model: Any, tokenizer: Any, runtimes: dict[str, str], folder: Path, length: int) -> Iterator[Row]:
    sites = hc.locate(model)
    removed = [f"{site.kind}.{site.layer}.{index}" for site in sites for index in site.heads[site.num_heads // 2 :]]
    sizes = {"full": model, "half": hc.remove(model, sites.mask(off=removed), verify=False)}
    versions = {"pytorch": _saved(sizes, tokenizer, folder)}
    versions |= {name: _exported(sizes, tokenizer, name, suffix, folder) for name, suffix in runtimes.items()}
    what_runs = {
        (runtime, size): version.subjects[size].works(1, length, WRITTEN)
        for runtime, version in versions.items()
        for size in sizes
    }
    for what, tokens in (("reading", length), ("writing", WRITTEN)):
        work = {f"{runtime} {size}": works[what] for (runtime, size), works in what_runs.items()}
        times = interleave(work, repeats=REPEATS, warmup=1)
        for runtime in versions:
            spent = {
                size: _flops(version, length) if what == "reading" else _bytes_read(version, length, runtime)
                for size, version in sizes.items()
            }
            yield _time_row(f"{type(model).__name__}, {runtime}", runtime, times, what, spent, tokens)
    for runtime, version in versions.items():
        yield from _size_rows(f"{type(model).__name__}, {runtime}", version)


def _flops(model: Any, length: int) -> int:
    """FLOPs of what is timed: the text and, of an encoder-decoder, the first token of its output."""
    batch = example_batch(model, batch=1, length=length, target=1, padded=False)
    return hc.cost(model, length=length, batch=batch).flops or 0


def _bytes_read(model: Any, length: int, runtime: str) -> int:
    """Bytes of weights and cache that are read while WRITTEN tokens are generated after `length` tokens.

    An encoder-decoder reads neither its encoder nor the key and value projections of cross attention, whose results
    are cached; CTranslate2 begins with the source each time and reads them once.
    """
    pair, output = model.config.is_encoder_decoder, model.get_output_embeddings()
    stack = model.get_decoder() if pair else model
    weights = {id(weight): weight.numel() for weight in (*stack.parameters(), *output.parameters())}
    table = model.get_input_embeddings().weight
    if table is not output.weight:
        weights.pop(id(table), None)
    cached = 0
    for site in hc.locate(model):
        if site.kind == "encoder":
            continue
        if site.kind == "cross":
            for name, roles in site.attention.projections.items():
                if set(roles) <= {"k", "v"}:
                    for weight in getattr(site.module, name).parameters():
                        weights.pop(id(weight), None)
        tokens = length if site.kind == "cross" else WRITTEN // 2 + (0 if pair else length)  # in the mean
        cached += 2 * tokens * site.kv_heads * site.head_dim
    every_token = sum(weights.values()) + cached
    all_weights = sum(weight.numel() for weight in model.parameters())
    once = all_weights - sum(weights.values()) if runtime == "ctranslate2" else 0
    return 4 * (WRITTEN * every_token + once)


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
        if any(subject.limit(context, 1) < context for subject in version.subjects.values()):
            continue  # the model has no positions for so many tokens
        bytes_of = {size: subject.cache_bytes(context) for size, subject in version.subjects.items()}
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
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=2 * max(CONTEXTS),
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def _translator() -> Any:
    size = PRESETS["base"].size
    layers = {name: min(LAYERS, getattr(size, name)) for name in ("encoder_layers", "decoder_layers")}
    model = new_translation_model(replace(size, **layers), laboratory.tokenizer(), seed=0).eval()
    model.set_attn_implementation("eager")  # as `headcount train` does on a CPU
    return model


def _byte_tokenizer() -> Any:
    """Bytes and a single merge, which llama.cpp asks for: GGUF holds a vocabulary."""
    tokens = ["<s>", "</s>", "th", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    rules = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, [("t", "h")]))
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=rules, bos_token="<s>", eos_token="</s>")
