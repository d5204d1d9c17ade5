"""Limits: beam search that ends every row of a batch at a limit of its own, as it would end alone.

`generate` has one limit for a batch. Beams of a shorter sentence would search on to the limit of the longest one, and
what is cut off afterwards is not what a search with the limit of the sentence returns.
Shapes: B batch, R rows of `generate`, which repeats each row of the batch for its beams, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, StoppingCriteria


class RowLimits(StoppingCriteria):
    """Ends each row at so many tokens, the start token included."""

    def __init__(self, most_B: Tensor) -> None:
        self._most_B = most_B

    def __call__(self, input_ids: Tensor, scores: Any, **rest: Any) -> Tensor:
        return input_ids.shape[1] >= _repeated(self._most_B, input_ids)


class RowEnds(LogitsProcessor):
    """Forces each row to end with this token at its limit, as `forced_eos_token_id` does at the limit of the batch."""

    def __init__(self, most_B: Tensor, end: int) -> None:
        self._most_B, self._end = most_B, end

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        last_R = _repeated(self._most_B, input_ids).eq(input_ids.shape[1] + 1)
        forced_V = torch.full_like(scores[0], -torch.inf)
        forced_V[self._end] = 0.0
        return torch.where(last_R[:, None], forced_V, scores)


def _repeated(most_B: Tensor, ids_RT: Tensor) -> Tensor:
    """[R]: the limit of each row of `generate`."""
    return most_B.to(ids_RT.device).repeat_interleave(len(ids_RT) // len(most_B))
