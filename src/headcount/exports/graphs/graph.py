"""Computation graphs of a model, with the names and dynamic axes of their inputs and outputs.

An encoder becomes one graph, and a decoder one graph with a cache. An encoder-decoder becomes two graphs: the encoder
outputs the keys and values of cross attention, which the decoder takes in addition to its own cache.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import NotExportable
from headcount.exports.graphs.modules import Reader, SourceEncoder, TargetDecoder, Writer, cache_tensors, without_empty
from headcount.exports.graphs.session import PAST, PRESENT
from headcount.exports.runtime import Obstacle
from headcount.sites.inputs import example_batch
from headcount.sites.running import evaluating

Batch = dict[str, Tensor]
Axes = Mapping[int, str]  # dynamic axis -> name of its size
_LARGEST = 2_000_000_000  # maximum size in bytes of a protocol buffers file
_OUTPUTS = ("logits", "last_hidden_state")  # main outputs, in order of preference
_LENGTH, _PAST, _TARGET = 7, 4, 5  # tokens of the traced example
_OPSET = 18


@dataclass(frozen=True)
class Graph:
    """A module to trace, with example inputs and dynamic axes.

    Attributes:
        name: Name of the graph, one of `graph_names`.
        module: The module to trace.
        example: Example inputs by name.
        outputs: Names of the outputs.
        axes: Dynamic axes of each input and output.
    """

    name: str
    module: nn.Module
    example: Batch
    outputs: tuple[str, ...]
    axes: Mapping[str, Axes]


def obstacle(model: PreTrainedModel) -> Obstacle | None:
    """Return why a model cannot be exported as graphs, or None if it can."""
    takes = set(inspect.signature(model.forward).parameters)
    further_inputs = takes & {"pixel_values", "input_features", "input_values"}
    if "input_ids" not in takes or further_inputs:
        return Obstacle(
            f"{type(model).__name__} takes {', '.join(sorted(further_inputs))}", "Only models of text are exported"
        )
    if is_pair(model) and not (hasattr(model, "get_encoder") and model.can_generate()):
        return Obstacle(f"{type(model).__name__} does not show its encoder", "Export the class that generates text")
    size = sum(parameter.numel() * 4 for parameter in model.parameters())
    if size > _LARGEST:
        return Obstacle(f"it has {size / 1e9:.1f} GB in float32, a file holds 2", "Export to gguf or vllm")
    return None if is_pair(model) or model.can_generate() else _reader_obstacle(model)


def _reader_obstacle(model: PreTrainedModel) -> Obstacle | None:
    """Return why a model without a cache does not map a text to one tensor, or None if it does."""
    batch, name = example_batch(model, batch=1, length=2), type(model).__name__
    if batch["input_ids"].dim() > 2:
        return Obstacle(f"{name} takes several texts for one answer", "Only models that take one text are exported")
    text = text_inputs(model, batch)
    result, reason = _tried(model, text)
    if result is None:
        return Obstacle(f"{name} cannot run on a text alone ({reason})", "Only models that take one text are exported")
    several, reason = _tried(model, {part: tensor.repeat(2, 1) for part, tensor in text.items()})
    if several is None:  # a graph would not notice: it would classify a shorter text by its padding
        return Obstacle(f"{name} cannot run on several texts ({reason})", "Set pad_token_id in its config")
    if all(getattr(result, output, None) is None for output in _OUTPUTS):
        return Obstacle(f"{name} returns {', '.join(result)}", f"Only models of {' or '.join(_OUTPUTS)} are exported")
    return None


def _tried(model: PreTrainedModel, text: Batch) -> tuple[Any, str]:
    """Return the output of a model, or None and the first line of the error; an unknown model may fail in any way."""
    try:
        with evaluating(model):
            return model(**text), ""
    except Exception as error:  # noqa: BLE001
        return None, str(error).partition("\n")[0][:200]


def costs(model: PreTrainedModel) -> list[str]:
    """Describe how the graphs must be called: the number of graphs, and the cache as tensors."""
    if is_pair(model):
        return ["encoder and decoder are two graphs; the cache goes in and out of the decoder as tensors"]
    cache = ["the cache goes in and out of the graph as tensors"] if model.can_generate() else []
    return [*cache, *_fixed_positions(model)]


def _fixed_positions(model: PreTrainedModel) -> list[str]:
    """A note if rotary positions depend on the length of the text: a graph has those of a short one."""
    rotary = getattr(model.config, "rope_parameters", None) or {}
    if rotary.get("rope_type") != "dynamic":
        return []
    return [
        f"the graph is right up to {model.config.max_position_embeddings} tokens: its rotary positions are fixed, but "
        "those of the model are scaled for longer texts (dynamic)"
    ]


def is_pair(model: PreTrainedModel) -> bool:
    """Return whether the model is an encoder-decoder."""
    return bool(model.config.is_encoder_decoder)


def graph_names(model: PreTrainedModel) -> tuple[str, ...]:
    return ("encoder_model", "decoder_model") if is_pair(model) else ("model",)


def graphs(model: PreTrainedModel) -> list[Graph]:
    """Return the graphs of a model, with the names of `graph_names`."""
    model = without_empty(model)
    batch = example_batch(model, batch=2, length=_LENGTH, target=_TARGET)
    if is_pair(model):
        return [_encoder(model, batch), _decoder(model, batch)]
    if model.can_generate():
        return [_writer(model, batch)]
    text = text_inputs(model, batch)
    output = output_name(model, text)
    axes: dict[str, Axes] = {name: {0: "batch", 1: "tokens"} for name in text}
    with evaluating(model):
        has_tokens = getattr(model(**text), output).dim() == 3
    axes[output] = {0: "batch", 1: "tokens"} if has_tokens else {0: "batch"}
    return [Graph("model", Reader(model, output), text, (output,), axes)]


def _writer(model: PreTrainedModel, batch: Batch) -> Graph:
    with evaluating(model):
        cache = model(**batch, use_cache=True).past_key_values
    past = {
        name: tensor[:, :, :_PAST].clone()
        for name, tensor in zip(_cache_names(cache.layers), cache_tensors(cache), strict=True)
    }
    example = {"input_ids": batch["input_ids"][:, _PAST:], "attention_mask": batch["attention_mask"], **past}
    axes: dict[str, Axes] = {
        "input_ids": {0: "batch", 1: "tokens"},
        "attention_mask": {0: "batch", 1: "past + tokens"},
        "logits": {0: "batch", 1: "tokens"},
    }
    return Graph("model", Writer(model), example, ("logits", *_present(past)), axes | _cache_axes(past, "past"))


def _encoder(model: PreTrainedModel, batch: Batch) -> Graph:
    text = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with evaluating(model):
        cache = model(**batch, use_cache=True).past_key_values.cross_attention_cache
    outputs = ("last_hidden_state", *_present(_cache_names(cache.layers, part=".encoder")))
    axes: dict[str, Axes] = {name: {0: "batch", 1: "source tokens"} for name in (*text, "last_hidden_state")}
    axes |= {name: {0: "batch", 2: "source tokens"} for name in outputs[1:]}
    return Graph("encoder_model", SourceEncoder(model), text, outputs, axes)


def _decoder(model: PreTrainedModel, batch: Batch) -> Graph:
    with evaluating(model):
        cache = model(**batch, use_cache=True).past_key_values
    written, source = cache.self_attention_cache, cache.cross_attention_cache
    names = _cache_names(written.layers, part=".decoder")
    past = {
        name: tensor[:, :, : _TARGET - 2].clone() for name, tensor in zip(names, cache_tensors(written), strict=True)
    }
    read = dict(zip(_cache_names(source.layers, part=".encoder"), cache_tensors(source), strict=True))
    example = {
        "input_ids": batch["decoder_input_ids"][:, -2:],
        "encoder_attention_mask": batch["attention_mask"],
        **past,
        **read,
    }
    axes: dict[str, Axes] = {
        "input_ids": {0: "batch", 1: "tokens"},
        "encoder_attention_mask": {0: "batch", 1: "source tokens"},
        "logits": {0: "batch", 1: "tokens"},
        **{name: {0: "batch", 2: "source tokens"} for name in read},
    }
    module = TargetDecoder(model, len(written.layers))
    return Graph("decoder_model", module, example, ("logits", *_present(past)), axes | _cache_axes(past, "past"))


def _cache_names(layers: Sequence[object], *, part: str = "") -> list[str]:
    return [f"{PAST}.{index}{part}.{kind}" for index in range(len(layers)) for kind in ("key", "value")]


def _present(past: Iterator[str] | Sequence[str] | Mapping[str, Tensor]) -> list[str]:
    return [name.replace(PAST, PRESENT) for name in past]


def _cache_axes(past: Mapping[str, Tensor], size: str) -> dict[str, Axes]:
    inputs: dict[str, Axes] = {name: {0: "batch", 2: size} for name in past}
    return inputs | {name: {0: "batch", 2: f"{size} + tokens"} for name in _present(past)}


def output_name(model: PreTrainedModel, text: Batch) -> str:
    """Return the name of the main output: logits if the model has them, otherwise the last hidden state."""
    with evaluating(model):
        result = model(**text)
    return next(name for name in _OUTPUTS if getattr(result, name, None) is not None)


def text_inputs(model: PreTrainedModel, batch: Mapping[str, Tensor]) -> Batch:
    """Return the inputs that a graph takes, with token types for an encoder that has more than one type."""
    text = {name: batch[name] for name in ("input_ids", "attention_mask")}
    takes = inspect.signature(model.forward).parameters
    if model.can_generate() or "token_type_ids" not in takes or getattr(model.config, "type_vocab_size", 0) < 2:
        return text
    types = batch.get("token_type_ids")
    return {**text, "token_type_ids": torch.zeros_like(text["input_ids"]) if types is None else types}


def write_onnx(graph: Graph, path: Path) -> None:
    """Write a graph as one ONNX file.

    It uses tracing instead of `torch.export`, which takes a minute for three layers with a cache. The check runs
    shapes other than the example, so it detects sizes that tracing made constant.
    """
    with evaluating(graph.module), _quiet():
        try:
            torch.onnx.export(
                graph.module,
                tuple(graph.example.values()),
                str(path),
                input_names=list(graph.example),
                output_names=list(graph.outputs),
                dynamic_axes={name: dict(axes) for name, axes in graph.axes.items()},
                opset_version=_OPSET,
                dynamo=False,
            )
        except torch.onnx.OnnxExporterError as error:
            reason = str(error).partition("\n")[0][:200]
            raise NotExportable(f"{type(graph.module.model).__name__} cannot be traced by torch: {reason}") from error
    _strip(path)


def _strip(path: Path) -> None:
    """Remove the exporter's metadata: stack traces with local paths, and the shapes of the example."""
    import onnx

    model = onnx.load(path)
    del model.metadata_props[:]
    del model.graph.value_info[:]
    for entry in (*model.graph.node, *model.graph.initializer, *model.graph.input, *model.graph.output, model.graph):
        del entry.metadata_props[:]
        entry.doc_string = ""
    onnx.save(model, path)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the output, warnings and log messages of the exporter."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(None):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
