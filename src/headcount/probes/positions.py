"""Positions: the tokens at the queries and keys of a site, according to the inputs of the model.

Shapes: B rows of the model, T positions (Q queries, K keys).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.special_tokens import special_tokens
from headcount.hooks import config_of, configured_module
from headcount.probes.padding import (
    CACHED,
    placed,
    source_mask,
    states_mask,
    target_labels,
    target_mask,
    virtual_tokens,
)
from headcount.sites.sides import of_target, of_text
from headcount.sites.site import Site

_IDS = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id", "decoder_start_token_id")
_NO_TOKEN = -1  # id at a learned position, which PEFT puts before a text


@dataclass(frozen=True)
class Positions:
    """One side of an attention site: the token at each position."""

    ids_BT: Tensor
    real_BT: Tensor  # bool: not padding
    special_BT: Tensor  # bool: CLS, SEP, BOS, EOS and the like, unless it is padding

    @property
    def tokens_BT(self) -> Tensor:
        return self.real_BT & ~self.special_BT

    @classmethod
    def of(cls, ids_BT: Tensor, real_BT: Tensor, specials: Collection[int]) -> Positions:
        """specials: ids of special tokens."""
        special = torch.tensor(sorted(specials), dtype=torch.long, device=ids_BT.device)
        return cls(ids_BT, real_BT, torch.isin(ids_BT, special) & real_BT)

    @classmethod
    def unknown(cls, real_BT: Tensor) -> Positions:
        """Images, speech, embeddings: no tokens are known, every position but padding counts."""
        return cls(torch.zeros_like(real_BT, dtype=torch.long), real_BT, torch.zeros_like(real_BT))


def special_ids(model: nn.Module, tokenizer: PreTrainedTokenizerBase | None = None) -> set[int]:
    """Ids of special tokens, from the tokenizer or the config; a model of texts and images names them for its text.

    Warns if there is no tokenizer and the config of a text model names none besides padding, as BERT's.
    """
    if tokenizer is not None:
        return special_tokens(tokenizer)
    config = config_of(model)
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    ids = [getattr(part, name, None) for part in (config, text_config) for name in _IDS]
    flat = [token for value in ids for token in (value if isinstance(value, list) else [value])]
    special = {int(token) for token in flat if token is not None}
    paddings = {getattr(part, "pad_token_id", None) for part in (config, text_config)}
    module = configured_module(model)
    if special <= paddings and "input_ids" in inspect.signature(module.forward).parameters:
        warnings.warn(
            f"The config of {type(module).__name__} names no special tokens besides padding, and there is no "
            "tokenizer: [CLS], [SEP] and the like count as words. Give tokenizer= or, for confidence, specials=, the "
            "ids to leave out.",
            stacklevel=3,
        )
    return special


def sides(
    model: nn.Module, site: Site, inputs: Mapping[str, Any], shape: torch.Size, specials: Collection[int]
) -> tuple[Positions, Positions]:
    """Queries and keys of a site whose attention has the shape [B, H, Q, K].

    inputs: what the model was given in this run, see `inputs_of`.
    In cross-attention a query is a decoding step and is identified by the token that it generates.
    """
    rows, _, query_count, looked_at = shape
    queries, keys = _texts(model, site, inputs, (rows, query_count))
    asking = queries.at(model, rows, query_count, specials, cached=inputs.get(CACHED, 0))
    return asking, keys.at(model, rows, looked_at, specials)


@dataclass(frozen=True)
class _Text:
    """What the inputs say about the tokens of one side."""

    ids_BT: Tensor | None = None
    mask_BT: Tensor | None = None
    starts: bool = False  # the first token is the start token, whatever its id

    def at(self, model: nn.Module, rows: int, length: int, specials: Collection[int], *, cached: int = 0) -> Positions:
        real_BT, ids_BT = placed(model, self.mask_BT, (rows, length), cached=cached), self.ids_BT
        before = virtual_tokens(model)
        if ids_BT is not None and before and ids_BT.shape == (rows, length - before):
            ids_BT = nn.functional.pad(ids_BT, (before, 0), value=_NO_TOKEN)
        if ids_BT is None or ids_BT.shape != (rows, length):
            return Positions.unknown(real_BT)
        positions = Positions.of(ids_BT, real_BT.to(ids_BT.device), specials)
        if self.starts:
            positions.special_BT[:, 0] = positions.real_BT[:, 0]
        return positions


def _texts(model: nn.Module, site: Site, batch: Mapping[str, Tensor], shape: tuple[int, int]) -> tuple[_Text, _Text]:
    """The queries and the keys of a site whose queries have the shape [B, Q]."""
    ids = batch.get("input_ids")
    source = _Text(None if ids is None else ids.flatten(0, -2), source_mask(batch))
    if of_target(model, site):
        read, written = _target(model, batch, source.ids_BT, shape)
        return (read, read) if site.kind == "decoder" else (written, source)
    if not of_text(site):
        return _Text(), _Text()
    if site.kind == "cross":  # of a decoder whose encoder is another model
        return source, _Text(mask_BT=states_mask(batch))
    return source, source


def _target(
    model: nn.Module, batch: Mapping[str, Tensor], source_BT: Tensor | None, shape: tuple[int, int]
) -> tuple[_Text, _Text]:
    """Input of a decoder, and its output at each position. Without a target it reads the source."""
    real_BT = target_mask(model, batch, shape)
    labels_BT, read_BT = target_labels(model, batch, shape), batch.get("decoder_input_ids")
    if labels_BT is not None:
        predicted_BT = labels_BT != -100  # a prompt is read, but not written
        if real_BT is not None and real_BT.shape == predicted_BT.shape:
            predicted_BT = predicted_BT & real_BT
        written_BT = labels_BT.masked_fill(labels_BT == -100, getattr(config_of(model), "pad_token_id", None) or 0)
        if read_BT is None or read_BT.shape != labels_BT.shape:
            read_BT = _after_start(written_BT)
        return _Text(read_BT, real_BT, starts=True), _Text(written_BT, predicted_BT)
    if read_BT is None and source_BT is not None:
        read = _Text(_after_start(source_BT), real_BT, starts=True)
    else:
        read = _Text(read_BT, real_BT)
    return read, read


def _after_start(ids_BT: Tensor) -> Tensor:
    """The input of a decoder that writes these tokens. The first is special: `starts` says so, whatever its id."""
    return ids_BT.roll(1, dims=1)
