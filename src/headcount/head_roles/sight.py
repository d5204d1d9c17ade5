"""View and Sight: the queries and keys of one batch, and the maxima of the heads of one site.

Shapes: B batch, H heads of a site, Q queries, K keys, S special tokens, U units (words).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from headcount.head_roles.encoding import Batch
from headcount.head_roles.reading import Reading
from headcount.probes.peaks import Peaks, at_places, few_places, highest, peaks
from headcount.probes.positions import Positions


@dataclass(frozen=True)
class View:
    """Queries and keys of one kind of attention, and which keys each query can attend to."""

    batch: Batch
    kind: str  # self or cross
    causal: bool
    queries: Positions
    keys: Positions
    reading: Reading
    frequencies: np.ndarray | None  # count and rank of the keys' tokens, if known
    allowed_BQK: Tensor | None = None  # bool: keys within the window of the layer, if it has one; B may be 1

    @cached_property
    def seen_BQK(self) -> Tensor:
        """Keys that a query can attend to: tokens, but no later ones if attention is causal, and within its window."""
        shape = (*self.queries.ids_BT.shape, self.keys.ids_BT.shape[1])
        seen_BQK = self.keys.tokens_BT[:, None].expand(shape)
        if self.causal:
            seen_BQK = seen_BQK & torch.ones(shape[1:], dtype=torch.bool).tril()
        if self.kind == "self" and not self.reading.diagonal:
            seen_BQK = seen_BQK & ~torch.eye(shape[1], dtype=torch.bool)
        return seen_BQK if self.allowed_BQK is None else seen_BQK & self.allowed_BQK

    @cached_property
    def choices_BQ(self) -> Tensor:
        return self.seen_BQK.sum(-1)

    @cached_property
    def asking_BQ(self) -> Tensor:
        """Queries that can attend to several keys: the maximum of one key is no evidence."""
        return self.queries.tokens_BT & (self.choices_BQ > 1)

    @cached_property
    def offsets_QK(self) -> Tensor:
        """Offset of the key from the query."""
        return torch.arange(self.keys.ids_BT.shape[1])[None] - torch.arange(self.queries.ids_BT.shape[1])[:, None]

    @cached_property
    def specials(self) -> tuple[Tensor, Tensor]:
        return few_places(self.keys.special_BT)

    @cached_property
    def seen_specials_BQS(self) -> Tensor:
        """Special tokens that a query can attend to: no later ones if attention is causal, and within its window."""
        places_BS, there_BS = self.specials
        queries = self.queries.ids_BT.shape[1]
        seen_BQS = there_BS[:, None].expand(-1, queries, -1)
        if self.causal:
            seen_BQS = seen_BQS & (places_BS[:, None] <= torch.arange(queries)[:, None])
        if self.allowed_BQK is None:
            return seen_BQS
        allowed_BQK = self.allowed_BQK.expand(len(places_BS), queries, -1)
        return seen_BQS & allowed_BQK.gather(-1, places_BS[:, None].expand_as(seen_BQS))

    def equals(self, other: View) -> bool:
        """Whether each token can attend to the same keys in another view of the same batch."""
        token_BQ1 = self.queries.tokens_BT[..., None]
        different = (self.seen_BQK ^ other.seen_BQK, self.seen_specials_BQS ^ other.seen_specials_BQS)
        return not any(bool((part & token_BQ1).any()) for part in different)


class Sight:
    """Maxima of the heads of one site in one batch. It holds the attention and is discarded after the layer."""

    def __init__(self, view: View, attention_BHQK: Tensor) -> None:
        self.view = view
        self._attention_BHQK = attention_BHQK
        device = attention_BHQK.device
        keys_BK = view.keys.tokens_BT.to(device)
        outside = view.kind == "self" and not view.reading.diagonal
        attended = peaks(attention_BHQK, keys_BK, diagonal=not outside)
        own_BHQ = attention_BHQK.diagonal(dim1=-2, dim2=-1).float() * keys_BK[:, None] if outside else None
        places_BS, there_BS = (part.to(device) for part in view.specials)
        self.special_BHQS = at_places(attention_BHQK, places_BS, there_BS).cpu()
        self.weight_BHQ = attended.weight_BHQ.cpu()
        self.confidence_BHQ = self.weight_BHQ if own_BHQ is None else torch.maximum(self.weight_BHQ, own_BHQ.cpu())
        self.place_BHQ = _only(attended).cpu()

    def words(self, row_N: Tensor, unit_N: Tensor) -> Tensor:
        """[N, H]: the unit with most attention from each of these units; -1 for a tie.

        Attention to a word is the sum over its tokens, from a word the mean over them.
        """
        device, batch = self._attention_BHQK.device, self.view.batch
        chosen_NQ = batch.words_BUT[row_N, unit_N]
        which_P, query_P = chosen_NQ.nonzero(as_tuple=True)  # every token of every query word
        from_PHK = self._attention_BHQK[row_N[which_P].to(device), :, query_P.to(device)].float()
        from_PHK = from_PHK / chosen_NQ.sum(-1)[which_P].to(device)[:, None, None]
        from_NHK = from_PHK.new_zeros(len(row_N), *from_PHK.shape[1:]).index_add_(0, which_P.to(device), from_PHK)
        unit_NHK = batch.unit_BT[row_N].to(device)[:, None].expand_as(from_NHK)
        units = batch.words_BUT.shape[1]
        to_NHU = from_NHK.new_zeros(*from_NHK.shape[:2], units + 1).scatter_add_(-1, unit_NHK, from_NHK)[..., :units]
        if not self.view.reading.diagonal:
            to_NHU.scatter_(-1, unit_N.to(device)[:, None, None].expand(-1, to_NHU.shape[1], 1), 0.0)
        return _only(highest(to_NHU)).cpu()

    @cached_property
    def found_BHQ(self) -> Tensor:
        """Queries with several keys and a single maximum."""
        return (self.place_BHQ >= 0) & self.view.asking_BQ[:, None]


def _only(attended: Peaks) -> Tensor:
    """Index of the maximum; -1 for a tie."""
    return attended.place_BHQ.where(attended.alone_BHQ, -1)
