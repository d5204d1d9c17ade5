"""Comparison of graphs in a runtime with the PyTorch model, for a single pass and for generation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from headcount.exports.agreement import STEPS, TEXTS, Agreement, compare_logits, compare_outputs, log_softmax
from headcount.exports.graphs.graph import Batch, is_pair, output_name, text_inputs
from headcount.exports.graphs.modules import positions
from headcount.exports.graphs.session import Arrays, GraphModel
from headcount.exports.runtime import ExportedModel
from headcount.sites.inputs import example_batch, longest
from headcount.sites.running import evaluating

Pair = tuple[np.ndarray, np.ndarray]  # outputs of the model, outputs of the runtime


def compare_graphs(subject: ExportedModel, runtime: GraphModel, *, name: str, version: str) -> Agreement:
    """Compare on texts with and without padding, whose shapes differ from the traced example.

    A generative model also generates a few tokens with its cache; PyTorch recomputes the whole text for each token.
    """
    model, pairs = subject.model, list[Pair]()
    writes = bool(model.can_generate())
    for batch in check_batches(subject):
        pairs += _written(model, runtime, batch) if writes else [_read(model, runtime, batch)]
    expected, computed = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    if not writes and output_name(model, text_inputs(model, batch)) != "logits":
        return compare_outputs(expected, computed, runtime=name, version=version)
    return compare_logits(expected, computed, runtime=name, version=version, writes=writes)


def first_outputs(model: PreTrainedModel, batch: Batch) -> np.ndarray:
    """Return what is compared first: log-probabilities or other outputs of a single pass, without those of padding."""
    if not model.can_generate():
        text = text_inputs(model, batch)
        ours, real = _outputs(model, text)
        return log_softmax(ours[real]) if output_name(model, text) == "logits" else ours[real]
    text, ids, mask = _start(model, batch)
    return log_softmax(_logits(model, text, ids, mask).numpy()[mask.bool().numpy()])


def _read(model: PreTrainedModel, runtime: GraphModel, batch: Batch) -> Pair:
    text = text_inputs(model, batch)
    ours, real = _outputs(model, text)
    return ours[real], runtime.read(_arrays(text))[real]


def _outputs(model: PreTrainedModel, text: Batch) -> tuple[np.ndarray, np.ndarray | slice]:
    """Return the outputs of a single pass, and which of them are not those of padding."""
    with evaluating(model):
        ours = getattr(model(**text), output_name(model, text))
    return ours.numpy(), text["attention_mask"].bool().numpy() if ours.dim() == 3 else slice(None)


def _start(model: PreTrainedModel, batch: Batch) -> tuple[Batch, Tensor, Tensor]:
    """Return the text, and the tokens to go on from with their mask."""
    text = {name: batch[name] for name in ("input_ids", "attention_mask")}
    if is_pair(model):
        return text, batch["decoder_input_ids"], torch.ones_like(batch["decoder_input_ids"])
    return text, text["input_ids"], text["attention_mask"]


def _written(model: PreTrainedModel, runtime: GraphModel, batch: Batch) -> list[Pair]:
    """Return the logits of the prompt, then of each token that PyTorch generates greedily."""
    text, ids, mask = _start(model, batch)
    progress, unread = runtime.begin(_arrays(text)), ids
    pairs = []
    for _ in range(STEPS):
        ours = _logits(model, text, ids, mask)[:, -unread.shape[1] :]
        real = mask[:, -unread.shape[1] :].bool().numpy()
        theirs = runtime.step(progress, unread.numpy(), mask[:, -unread.shape[1] :].numpy())
        pairs.append((ours.numpy()[real], theirs[real]))
        unread = ours[:, -1:].argmax(-1)
        ids, mask = torch.cat([ids, unread], dim=1), torch.cat([mask, torch.ones_like(unread)], dim=1)
    return pairs


def _logits(model: PreTrainedModel, text: Batch, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the logits of all tokens. Without padding the model counts positions itself, as in training."""
    with evaluating(model):
        if is_pair(model):
            result = model(**text, decoder_input_ids=ids, use_cache=False)
        else:
            position_inputs = positions(model, mask, ids.shape[1]) if _has_padding(model, ids, mask) else {}
            result = model(input_ids=ids, attention_mask=mask, use_cache=False, **position_inputs)
    return result.logits.float()


def _has_padding(model: PreTrainedModel, ids: Tensor, mask: Tensor) -> bool:
    """Whether there is padding: by the mask, or by the token, which RoBERTa goes by and a model may generate."""
    filler = getattr(model.config, "pad_token_id", None)
    return not bool(mask.all()) or (filler is not None and bool((ids == filler).any()))


def check_batches(subject: ExportedModel) -> Sequence[Batch]:
    """Return batches with and without padding: random tokens, and texts if there is a tokenizer."""
    model, tokenizer = subject.model, subject.tokenizer
    length = max(1, longest(model, 13 + STEPS) - STEPS)
    synthetic = [
        example_batch(model, batch=1, length=min(3, length), target=1, seed=1),
        example_batch(model, batch=3, length=length, target=min(3, length), seed=2),
    ]
    if tokenizer is None or tokenizer.pad_token_id is None:
        return synthetic
    texts = [list(tokenizer(text).input_ids)[: max(1, longest(model, 24 + STEPS) - STEPS)] for text in TEXTS]
    target = {name: synthetic[1][name] for name in ("decoder_input_ids",) if name in synthetic[1]}
    left = model.can_generate() and not is_pair(model)
    return [*synthetic, {**_padded(texts, tokenizer.pad_token_id, left=left), **target}]


def _padded(texts: Sequence[list[int]], filler: int, *, left: bool) -> Batch:
    length = max(len(ids) for ids in texts)
    ids, mask = torch.full((len(texts), length), filler), torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in enumerate(texts):
        columns = slice(length - len(text), length) if left else slice(0, len(text))
        ids[row, columns], mask[row, columns] = torch.tensor(text), 1
    return {"input_ids": ids, "attention_mask": mask}


def _arrays(text: Batch) -> Arrays:
    return {name: tensor.numpy() for name, tensor in text.items()}
