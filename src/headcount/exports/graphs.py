"""Graphs: a model as computation graphs with any batch and any length, for ONNX Runtime and what reads its format.

An encoder-decoder becomes two graphs, all others one. None keeps keys and values between calls.
Shape suffixes: B texts, T tokens of the input, S tokens of the target.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.errors import NotExportable
from headcount.exports.agreement import TEXTS, Agreement, compare_logits, compare_outputs
from headcount.exports.runtime import ExportedModel, Obstacle
from headcount.sites.inputs import example_batch, longest
from headcount.sites.locate import locate
from headcount.sites.projection import relative_path, width_out
from headcount.sites.running import evaluating

Batch = dict[str, Tensor]
Run = Callable[[Mapping[str, np.ndarray]], np.ndarray]  # from the inputs of a graph to its output
_TEXT = ("input_ids", "attention_mask", "token_type_ids")
_LARGEST = 2_000_000_000  # bytes of a file of protocol buffers
_LENGTH, _TARGET = 7, 5  # tokens of the example that is traced


@dataclass(frozen=True)
class Graph:
    """One graph: a module, an example of its inputs and the name of its output."""

    name: str
    module: nn.Module
    example: Batch
    output: str


class _Whole(nn.Module):
    """A model without its decoder's options: from text to one tensor."""

    def __init__(self, model: PreTrainedModel, output: str) -> None:
        super().__init__()
        self.model, self.output = model, output
        takes = inspect.signature(model.forward).parameters
        self.options = {"use_cache": False} if "use_cache" in takes else {}

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, **types, **self.options)
        return getattr(result, self.output)


class _Decoder(nn.Module):
    """The decoder of an encoder-decoder, with its output layer: from target tokens and encoded text to logits."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, encoder_hidden_states: Tensor, encoder_attention_mask: Tensor) -> Tensor:
        result = self.model(
            decoder_input_ids=input_ids,
            encoder_outputs=(encoder_hidden_states,),
            attention_mask=encoder_attention_mask,
            use_cache=False,
        )
        return result.logits


def obstacle(model: PreTrainedModel) -> Obstacle | None:
    """Why a model cannot become graphs."""
    takes = set(inspect.signature(model.forward).parameters)
    further_inputs = takes & {"pixel_values", "input_features", "input_values"}
    if "input_ids" not in takes or further_inputs:
        return Obstacle(
            f"{type(model).__name__} takes {', '.join(sorted(further_inputs))}", "Only models of text are exported"
        )
    if is_pair(model) and not hasattr(model, "get_encoder"):
        return Obstacle(f"{type(model).__name__} does not show its encoder", "Export the class that generates text")
    size = sum(parameter.numel() * 4 for parameter in model.parameters())
    if size > _LARGEST:
        return Obstacle(f"it has {size / 1e9:.1f} GB in float32, a file holds 2", "Export to gguf or vllm")
    return None


def costs(model: PreTrainedModel) -> list[str]:
    """What graphs lack, in words."""
    if is_pair(model):
        return ["encoder and decoder are two graphs; the decoder keeps no cache and reads the whole target each time"]
    if model.can_generate():
        return ["the graph keeps no cache and reads the whole text for each new token"]
    return []


def is_pair(model: PreTrainedModel) -> bool:
    """Whether the model is an encoder and a decoder."""
    return bool(model.config.is_encoder_decoder)


def graphs(model: PreTrainedModel) -> list[Graph]:
    """The graphs of a model: `model`, or `encoder_model` and `decoder_model`."""
    model = _without_empty(model)
    batch = example_batch(model, batch=2, length=_LENGTH, target=_TARGET)
    text = _text(model, batch)
    if not is_pair(model):
        output = output_name(model, text)
        return [Graph("model", _Whole(model, output), text, output)]
    encoder: Any = model.get_encoder()
    with evaluating(model):
        states = encoder(**text).last_hidden_state
    target = {
        "input_ids": batch["decoder_input_ids"],
        "encoder_hidden_states": states.clone(),
        "encoder_attention_mask": text["attention_mask"],
    }
    return [
        Graph("encoder_model", _Whole(encoder, "last_hidden_state"), text, "last_hidden_state"),
        Graph("decoder_model", _Decoder(model), target, "logits"),
    ]


class _Bias(nn.Module):
    """What is left of an output projection without inputs."""

    def __init__(self, projection: nn.Module) -> None:
        super().__init__()
        bias = getattr(projection, "bias", None)
        self.bias = nn.Parameter(torch.zeros(width_out(projection)) if bias is None else bias.detach().clone())

    def forward(self, context: Tensor) -> Tensor:
        return self.bias.expand(*context.shape[:-1], -1)


def _without_empty(model: PreTrainedModel) -> PreTrainedModel:
    """The same model, in which layers without heads multiply no matrices without columns: OpenVINO reads none."""
    if all(site.num_heads for site in locate(model)):
        return model
    twin = copy.deepcopy(model)
    for site in locate(twin):
        if not site.num_heads:
            owner, _, name = relative_path(site.path, site.attention.output).rpartition(".")
            setattr(twin.get_submodule(owner), name, _Bias(site.output))
    return twin


def output_name(model: PreTrainedModel, text: Batch) -> str:
    """What the graph of a model gives: logits, or the states of the last layer."""
    with evaluating(model):
        return "logits" if getattr(model(**text), "logits", None) is not None else "last_hidden_state"


def write_onnx(graph: Graph, path: Path) -> None:
    """Write a graph as one ONNX file."""
    any_size = torch.export.Dim.AUTO  # axes that are equal are found out by tracing
    with evaluating(graph.module), _quiet():
        try:
            torch.onnx.export(
                graph.module,
                kwargs=graph.example,
                f=str(path),
                input_names=list(graph.example),
                output_names=[graph.output],
                dynamic_shapes={name: {0: any_size, 1: any_size} for name in graph.example},
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            reason = next((line for line in str(error).splitlines() if line.startswith("<class")), str(error)[:200])
            raise NotExportable(f"{type(graph.module.model).__name__} cannot be traced by torch: {reason}") from error
    _strip(path)


def _strip(path: Path) -> None:
    """Remove what the exporter notes beside a graph: traces with paths of this machine, and shapes before folding."""
    import onnx

    model = onnx.load(path)
    del model.metadata_props[:]
    del model.graph.value_info[:]
    for entry in (*model.graph.node, *model.graph.initializer, *model.graph.input, *model.graph.output, model.graph):
        del entry.metadata_props[:]
        entry.doc_string = ""
    onnx.save(model, path)


def check_graphs(subject: ExportedModel, run: Mapping[str, Run], *, runtime: str, version: str) -> Agreement:
    """Compare what a runtime computes with the model, on single texts and on padded ones.

    run: how the runtime computes each graph, by the graph's name.
    """
    model = subject.model
    expected, computed = [], []
    output = "logits"
    for batch in _check_batches(model, subject.tokenizer):
        text = _text(model, batch)
        with evaluating(model):
            if is_pair(model):
                ours = model(**text, decoder_input_ids=batch["decoder_input_ids"], use_cache=False).logits
            else:
                output = output_name(model, text)
                ours = getattr(model(**text), output)
        theirs = _run(run, text, batch.get("decoder_input_ids"))
        positions = text["attention_mask"].bool() if ours.dim() == 3 and not is_pair(model) else slice(None)
        expected.append(ours.numpy()[positions])
        computed.append(theirs[positions])
    if output != "logits":
        return compare_outputs(expected, computed, runtime=runtime, version=version)
    writes = bool(model.can_generate())
    return compare_logits(expected, computed, runtime=runtime, version=version, writes=writes)


def _run(run: Mapping[str, Run], text: Batch, target: Tensor | None) -> np.ndarray:
    arrays = {name: tensor.numpy() for name, tensor in text.items()}
    if target is None:
        return run["model"](arrays)
    states = run["encoder_model"](arrays)
    return run["decoder_model"](
        {
            "input_ids": target.numpy(),
            "encoder_hidden_states": states,
            "encoder_attention_mask": arrays["attention_mask"],
        }
    )


def _check_batches(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Sequence[Batch]:
    """A single text and a padded batch, of other shapes than the example that was traced."""
    length = longest(model, 13)
    synthetic = [
        example_batch(model, batch=1, length=min(3, length), target=2, seed=1),
        example_batch(model, batch=3, length=length, target=min(9, length), seed=2),
    ]
    if tokenizer is None or tokenizer.pad_token_id is None:
        return synthetic
    real = tokenizer(list(TEXTS), padding=True, truncation=True, max_length=longest(model, 32), return_tensors="pt")
    target = {name: synthetic[1][name] for name in ("decoder_input_ids",) if name in synthetic[1]}
    return [*synthetic, {**real, **target}]


def _text(model: PreTrainedModel, batch: Mapping[str, Tensor]) -> Batch:
    """The inputs of a batch that a graph takes; types of tokens where the model tells several apart."""
    text = {name: batch[name] for name in ("input_ids", "attention_mask")}
    if not _takes_types(model):
        return text
    types = batch.get("token_type_ids")
    return {**text, "token_type_ids": torch.zeros_like(text["input_ids"]) if types is None else types}


def _takes_types(model: PreTrainedModel) -> bool:
    takes = inspect.signature(model.forward).parameters
    return "token_type_ids" in takes and getattr(model.config, "type_vocab_size", 0) > 1


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells its progress and what is not installed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(None):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
