"""Positions: the tokens at the queries and keys of a site, according to the batch.

Shapes: B batch, T positions (Q queries, K keys).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from headcount.corpora.special_tokens import special_tokens
from headcount.hooks import config_of, is_encoder_decoder
from headcount.probes.padding import before_padding
from headcount.sites.site import Site

_IDS = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id", "decoder_start_token_id")


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
        special = torch.tensor(sorted(specials) or [-1], device=ids_BT.device)
        return cls(ids_BT, real_BT, torch.isin(ids_BT, special) & real_BT)

    @classmethod
    def unknown(cls, batch: int, length: int, device: torch.device) -> Positions:
        """Images, speech: no tokens, every position counts."""
        ids_BT = torch.zeros(batch, length, dtype=torch.long, device=device)
        real_BT = torch.ones_like(ids_BT, dtype=torch.bool)
        return cls(ids_BT, real_BT, ~real_BT)


def special_ids(model: nn.Module, tokenizer: PreTrainedTokenizerBase | None = None) -> set[int]:
    """Ids of special tokens, from the tokenizer or the config."""
    if tokenizer is not None:
        return special_tokens(tokenizer)
    config = config_of(model)
    ids = [getattr(config, name, None) for name in _IDS]
    flat = [token for value in ids for token in (value if isinstance(value, list) else [value])]
    return {int(token) for token in flat if token is not None}


def sides(
    model: nn.Module, site: Site, batch: Mapping[str, Tensor], shape: torch.Size, specials: Collection[int]
) -> tuple[Positions, Positions]:
    """Queries and keys of a site whose attention has the shape [B, H, Q, K].

    In cross-attention a query is a decoding step and is identified by the token that it generates.
    """
    config, both = config_of(model), is_encoder_decoder(model)
    source = _side(batch.get("input_ids"), batch.get("attention_mask"), specials)
    read, written = _target(config, batch, specials) if both else (None, None)
    by_kind = {"decoder": (read, read), "cross": (written, source)} if both else {}
    queries, keys = by_kind.get(site.kind, (source, source))
    rows, _, query_count, looked_at = shape
    return _fitting(queries, rows, query_count, batch), _fitting(keys, rows, looked_at, batch)


def _side(ids_BT: Tensor | None, mask_BT: Tensor | None, specials: Collection[int]) -> Positions | None:
    if ids_BT is None or ids_BT.dim() != 2:
        return None
    usable = mask_BT is not None and mask_BT.shape == ids_BT.shape
    real_BT = mask_BT.bool() if usable and mask_BT is not None else torch.ones_like(ids_BT, dtype=torch.bool)
    return Positions.of(ids_BT, real_BT, specials)


def _target(
    config: PreTrainedConfig, batch: Mapping[str, Tensor], specials: Collection[int]
) -> tuple[Positions | None, Positions | None]:
    """Input of a decoder, and its output at each position."""
    labels_BT, read_BT = batch.get("labels"), batch.get("decoder_input_ids")
    padding = getattr(config, "pad_token_id", None) or 0
    if labels_BT is not None and labels_BT.dim() == 2:
        real_BT = labels_BT != -100
        written_BT = labels_BT.where(real_BT, padding)
        if read_BT is None or read_BT.shape != labels_BT.shape:
            read_BT = written_BT.roll(1, dims=1)
            read_BT[:, 0] = getattr(config, "decoder_start_token_id", None) or 0
        reading = Positions.of(read_BT, real_BT, specials)
        reading.special_BT[:, 0] = real_BT[:, 0]  # the start token, whatever its id
        return reading, Positions.of(written_BT, real_BT, specials)
    mask_BT = batch.get("decoder_attention_mask")
    read = _side(read_BT, before_padding(read_BT, config) if mask_BT is None else mask_BT, specials)
    return read, read


def _fitting(side: Positions | None, rows: int, length: int, batch: Mapping[str, Tensor]) -> Positions:
    if side is not None and tuple(side.ids_BT.shape) == (rows, length):
        return side
    device = next((value.device for value in batch.values() if isinstance(value, Tensor)), torch.device("cpu"))
    return Positions.unknown(rows, length, device)
