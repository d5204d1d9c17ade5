"""Drafts: the greedy output of a model, checked against what a similar model wrote instead of written anew.

Given a whole draft, one run predicts every next token at once. Up to the first token that differs the prediction is
what step-by-step decoding would have written; it becomes the next draft, until nothing differs any more. A fixed point
is the greedy output, token for token, and a good draft needs few runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from headcount.tasks.translation.decoding import most_new_tokens

_ROOM = 4  # positions after the longest draft, for outputs that become longer


def can_draft(model: Any) -> bool:
    """Whether the model decodes greedily without rules that look back over what was written."""
    settings = model.generation_config
    return not (
        (settings.repetition_penalty or 1.0) != 1.0
        or settings.no_repeat_ngram_size
        or settings.min_length
        or settings.min_new_tokens
        or settings.forced_bos_token_id is not None
        or settings.begin_suppress_tokens
        or any(len(word) > 1 for word in settings.bad_words_ids or ())
    )


def redecode(
    model: Any,
    source_BT: Tensor,
    drafts: list[list[int]],
    *,
    padding: int,
    first: AbstractContextManager[Any] | None = None,
    only: Callable[[Tensor], None] = lambda _: None,
) -> list[list[int]]:
    """The model's greedy outputs for the rows of a batch, each with its end, by improving drafts.

    first: a block around the first run, which is on the whole batch. only: told which rows the next run is on.
    """
    rows, end = len(drafts), _ends(model)
    limit = most_new_tokens(model, source_BT.shape[1])
    real_BT = (source_BT != padding).long()
    length = min(limit, max(map(len, drafts)) + _ROOM)
    draft_PL = _padded(drafts, length, padding)
    pending_P, hidden = torch.arange(rows), None
    found: list[list[int]] = [[] for _ in range(rows)]
    while len(pending_P):
        with (first or nullcontext()) if hidden is None else nullcontext():
            written_PL, hidden = _run(model, source_BT[pending_P], real_BT[pending_P], draft_PL, hidden)
        stop_P = _first(torch.isin(written_PL, end))
        same_P = _first(written_PL != draft_PL)
        done_P = same_P > stop_P
        for place in done_P.nonzero()[:, 0].tolist():
            found[int(pending_P[place])] = written_PL[place, : int(stop_P[place]) + 1].tolist()
        at_end_P = ~done_P & (same_P == length) & (stop_P == length)  # right so far, and no room for more
        if bool(at_end_P.any()) and length >= limit:
            for place in at_end_P.nonzero()[:, 0].tolist():
                found[int(pending_P[place])] = _cut_off(model, written_PL[place].tolist())
            done_P |= at_end_P
        left_P = ~done_P
        if bool(at_end_P[left_P].any()):
            length = min(limit, length + 2 * _ROOM)
        pending_P, hidden = pending_P[left_P], hidden[left_P]
        draft_PL = torch.nn.functional.pad(written_PL[left_P], (0, length - written_PL.shape[1]), value=padding)
        only(pending_P)
    return found


def _run(
    model: Any, source_PT: Tensor, real_PT: Tensor, draft_PL: Tensor, hidden: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The prediction of every token of the drafts, and what the encoder gave."""
    start = torch.full((len(draft_PL), 1), model.config.decoder_start_token_id)
    before_PL = torch.cat([start, draft_PL[:, :-1]], dim=1).to(model.device)
    source: dict[str, Any] = (
        {"input_ids": source_PT.to(model.device)}
        if hidden is None
        else {"encoder_outputs": BaseModelOutput(last_hidden_state=hidden)}
    )
    output = model(**source, attention_mask=real_PT.to(model.device), decoder_input_ids=before_PL, use_cache=False)
    logits_PLV = output.logits
    forbidden = _forbidden(model)
    if forbidden:
        logits_PLV[..., forbidden] = -torch.inf
    return logits_PLV.argmax(-1).cpu(), output.encoder_last_hidden_state


def _cut_off(model: Any, ids: list[int]) -> list[int]:
    """An output that reached the longest length: some models are made to end there."""
    forced = model.generation_config.forced_eos_token_id
    return ids if forced is None else [*ids[:-1], forced if isinstance(forced, int) else forced[0]]


def _first(true_PL: Tensor) -> Tensor:
    """[P]: the first place that is true; the length where none is."""
    places = torch.arange(true_PL.shape[1]).expand_as(true_PL)
    return places.masked_fill(~true_PL, true_PL.shape[1]).amin(-1)


def _ends(model: Any) -> Tensor:
    end = model.generation_config.eos_token_id
    return torch.tensor(end if isinstance(end, list) else [end])


def _forbidden(model: Any) -> list[int]:
    settings = model.generation_config
    return [*(word[0] for word in settings.bad_words_ids or ()), *(settings.suppress_tokens or ())]


def _padded(rows: list[list[int]], length: int, padding: int) -> Tensor:
    filled = torch.full((len(rows), length), padding)
    for place, row in enumerate(rows):
        filled[place, : min(len(row), length)] = torch.tensor(row[:length], dtype=torch.long)
    return filled
