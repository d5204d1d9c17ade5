"""Soundness: checks of a model's output on a batch, because unsound output would give a wrong number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError
from headcount.hooks import configured_module, is_encoder_decoder
from headcount.sites.rotary import widest_alike
from headcount.sites.running import evaluating

_PADDED = ("input_ids", "attention_mask", "token_type_ids", "labels")
_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}  # of a loss; other types have only 8 or 11 bits


def check_ids(model: nn.Module, ids: Tensor) -> None:
    """Raise if the model has no embedding for a token id: the tokenizer belongs to another model."""
    vocabulary = _vocabulary(model)
    largest = int(ids.max()) if ids.numel() else 0
    if vocabulary is not None and largest >= vocabulary:
        raise UsageError(
            f"The tokenizer produces token {largest}, but {_class_name(model)} has only {vocabulary} embeddings: it is "
            "the tokenizer of another model, or has a token that was added later, such as [PAD]. Load the one that was "
            "saved with this model, or run model.resize_token_embeddings(len(tokenizer))."
        )


def check_logits(model: nn.Module, logits: Tensor, task: str, *, dimensions: int) -> None:
    """Raise if the logits have the shape of another task: [B, C] per text, or [B, T, C] per token."""
    if logits.dim() != dimensions:
        answers = {2: "one answer for each text", 3: "an answer for each token"}
        raise UsageError(
            f"The task {task} needs {answers[dimensions]}; {_class_name(model)} gives "
            f"{answers.get(logits.dim(), f'logits of shape {list(logits.shape)}')}. Load the model for this task: "
            f"hc.load(..., task={task!r})."
        )


def check_finite(model: nn.Module, values: Tensor, what: str) -> None:
    """Raise at NaN and infinity, which argmax and comparisons would hide. Training checks its loss itself."""
    if not model.training and not bool(values.detach().isfinite().all()):
        raise ModelError(
            f"{_class_name(model)} returns {what} that are NaN or infinite. Its weights are damaged, or "
            "its activations overflow: load it in float32 (dtype='float32'), and look for NaN in its weights."
        )


def check_losses(model: nn.Module, batch: Mapping[str, Any], nll: Callable[[nn.Module, Any], Tensor]) -> None:
    """Raise if the loss of a text is not a number; warn if it depends on the padding after the text.

    It does in a model that ignores its attention mask. The shortest text of the batch is run alone and padded, but not
    to a width that changes its rotary positions, which is none of the mask's doing.
    nll: function that returns the loss of each example of a batch, and checks that it is a number.
    """
    mask_BT = batch.get("attention_mask")
    if not isinstance(mask_BT, Tensor) or mask_BT.dim() != 2 or not bool(mask_BT[:, 0].all()):
        return  # no texts, or padding before them
    row = int(mask_BT.sum(-1).argmin())
    length = int(mask_BT[row].sum())
    lengths = dict.fromkeys((length, widest_alike(model, length, mask_BT.shape[1])))  # once if nothing is padded
    with evaluating(model):
        losses = [float(nll(model, _row(model, batch, row, columns))) for columns in lengths]
    alone, padded = losses[0], losses[-1]
    if abs(padded - alone) > loss_tolerance(model) * max(1.0, abs(alone)):
        warnings.warn(
            f"{_class_name(model)} has a loss of {alone:.4g} on a text of {length} tokens and {padded:.4g} with "
            "padding: it ignores its attention mask, and results depend on how texts are batched. "
            "Measure with batch_size=1.",
            stacklevel=3,
        )


def loss_tolerance(model: nn.Module) -> float:
    """Largest relative difference of a loss by rounding: the same example in batches of another shape."""
    return _TOLERANCE.get(next(model.parameters()).dtype, 5e-2)


def _row(model: nn.Module, batch: Mapping[str, Any], row: int, columns: int) -> dict[str, Any]:
    """One example of a batch, its texts truncated to this many columns, but not the inputs of a seq2seq decoder.

    Labels of a seq2seq model that has no other decoder input may be those of its source, as of masked tokens.
    """
    rows = {name: value[row : row + 1] for name, value in batch.items() if isinstance(value, Tensor)}
    names = _PADDED[:-1] if is_encoder_decoder(model) and not _of_source(rows, columns) else _PADDED
    return {name: value[:, :columns] if name in names and value.dim() == 2 else value for name, value in rows.items()}


def _of_source(rows: Mapping[str, Tensor], columns: int) -> bool:
    """Whether labels are as long as the source, and padding from this column on."""
    labels, mask = rows.get("labels"), rows["attention_mask"]
    if labels is None or "decoder_input_ids" in rows or labels.shape != mask.shape:
        return False
    return bool((labels[:, columns:] == -100).all())


def _vocabulary(model: nn.Module) -> int | None:
    """Number of token embeddings of a model; None if unknown."""
    plain_model: Any = configured_module(model)
    try:
        table = plain_model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return None
    return table.num_embeddings if isinstance(table, nn.Embedding) else None


def _class_name(model: nn.Module) -> str:
    return type(configured_module(model)).__name__
