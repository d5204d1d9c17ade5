"""Drafts: the greedy output of a model, found by checking the output of a similar model instead of decoding.

Given a whole draft, one forward pass predicts every next token. Up to the first token that differs, the prediction is
the greedy output; the prediction becomes the next draft until nothing differs. A fixed point is the greedy output,
token for token. A good draft needs few passes; rows that do not converge are decoded step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from headcount.sites.decoder_input import generation_start
from headcount.sites.devices import input_device
from headcount.tasks.translation.decoding import ONE_OUTPUT, cut, most_new_tokens

_FACTORS = ("repetition_penalty", "encoder_repetition_penalty", "guidance_scale")  # 1 changes nothing
_RULES = (  # of generation, which a single pass over a whole draft does not follow
    "encoder_no_repeat_ngram_size", "sequence_bias", "exponential_decay_length_penalty", "watermarking_config",
    "stop_strings", "no_repeat_ngram_size", "min_length", "min_new_tokens", "begin_suppress_tokens",
)  # fmt: skip
_ROOM = 4  # positions after the longest draft, for outputs that become longer


def can_draft(model: PreTrainedModel) -> bool:
    """Whether the model decodes greedily without rules that depend on earlier output."""
    settings = model.generation_config
    return not (
        any((getattr(settings, name, None) or 1.0) != 1.0 for name in _FACTORS)
        or any(getattr(settings, name, None) for name in _RULES)
        or settings.forced_bos_token_id is not None
        or any(len(word) > 1 for word in settings.bad_words_ids or ())
    )


@dataclass
class Drafts:
    """Drafts for the rows of a batch, and the outputs that are complete."""

    source_BT: Tensor
    mask_BT: Tensor  # 1 for tokens of the source, 0 for padding
    padding: int
    limit: int  # tokens of an output
    draft_PL: Tensor  # drafts of the pending rows
    pending_P: Tensor
    outputs: list[list[int]]  # outputs, each with its end; empty while pending
    hidden_PTD: Tensor | None = None  # output of the encoder

    @classmethod
    def of(
        cls,
        model: PreTrainedModel,
        source_BT: Tensor,
        mask_BT: Tensor,
        drafts: Sequence[Sequence[int]],
        padding: int,
    ) -> Drafts:
        limit = most_new_tokens(model, source_BT.shape[1])
        length = min(limit, max(map(len, drafts)) + _ROOM)
        rows = torch.arange(len(drafts))
        return cls(source_BT, mask_BT, padding, limit, _padded(drafts, length, padding), rows, [[] for _ in drafts])

    def improve(self, model: PreTrainedModel) -> None:
        """Run the pending rows once: drafts equal to the model's output are complete, the others are improved."""
        written_PL, hidden_PTD = self._run(model)
        length = written_PL.shape[1]
        stop_P = _first(torch.isin(written_PL, _ends(model)))
        same_P = _first(written_PL != self.draft_PL)
        done_P = same_P > stop_P
        for index in done_P.nonzero()[:, 0].tolist():
            self._settle(model, index, written_PL[index, : int(stop_P[index]) + 1].tolist())
        full_P = ~done_P & (same_P == length) & (stop_P == length)  # right so far, and no room for more
        if length >= self.limit:
            for index in full_P.nonzero()[:, 0].tolist():
                self._settle(model, index, _cut_off(model, written_PL[index].tolist()))
            done_P |= full_P
        left_P = ~done_P
        room = min(self.limit, length + 2 * _ROOM) - length if bool(full_P[left_P].any()) else 0
        self.draft_PL = torch.nn.functional.pad(written_PL[left_P], (0, room), value=self.padding)
        self.pending_P = self.pending_P[left_P]
        self.hidden_PTD = hidden_PTD[left_P.to(hidden_PTD.device)]

    def finish(self, model: PreTrainedModel) -> None:
        """Decode the pending rows step by step."""
        if not len(self.pending_P):
            return
        written_PL = model.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=self.hidden_PTD),
            attention_mask=self.mask_BT[self.pending_P].to(input_device(model)),
            num_beams=1,
            max_new_tokens=self.limit,
            **ONE_OUTPUT,
        )
        stop_P = _first(torch.isin(written_PL[:, 1:].cpu(), _ends(model)))
        for index, (ids, stop) in enumerate(zip(written_PL[:, 1:].tolist(), stop_P.tolist(), strict=True)):
            self._settle(model, index, ids[: stop + 1])
        self.pending_P = self.pending_P[:0]

    def _settle(self, model: PreTrainedModel, index: int, ids: list[int]) -> None:
        """Store the output of a pending row, truncated at its limit."""
        row = int(self.pending_P[index])
        self.outputs[row] = cut(model, ids, most_new_tokens(model, int(self.mask_BT[row].sum())))

    def _run(self, model: PreTrainedModel) -> tuple[Tensor, Tensor]:
        """[P, L]: the prediction of every token of the drafts; and the output of the encoder."""
        start_P1 = torch.full((len(self.draft_PL), 1), generation_start(model))
        source: dict[str, Any] = (
            {"input_ids": self.source_BT[self.pending_P].to(input_device(model))}
            if self.hidden_PTD is None
            else {"encoder_outputs": BaseModelOutput(last_hidden_state=self.hidden_PTD)}
        )
        output = model(
            **source,
            attention_mask=self.mask_BT[self.pending_P].to(input_device(model)),
            decoder_input_ids=torch.cat([start_P1, self.draft_PL[:, :-1]], dim=1).to(input_device(model)),
            use_cache=False,
        )
        logits_PLV: Tensor = output.logits
        forbidden = _forbidden(model)
        if forbidden:
            logits_PLV[..., forbidden] = -torch.inf
        return logits_PLV.argmax(-1).cpu(), output.encoder_last_hidden_state


def _cut_off(model: PreTrainedModel, ids: list[int]) -> list[int]:
    """An output that reached the limit; some models are forced to end there."""
    forced = model.generation_config.forced_eos_token_id
    return ids if forced is None else [*ids[:-1], forced if isinstance(forced, int) else forced[0]]


def _first(true_PL: Tensor) -> Tensor:
    """[P]: index of the first true value; the length if there is none."""
    places = torch.arange(true_PL.shape[1]).expand_as(true_PL)
    return places.masked_fill(~true_PL, true_PL.shape[1]).amin(-1)


def _ends(model: PreTrainedModel) -> Tensor:
    end = model.generation_config.eos_token_id
    return torch.tensor(end if isinstance(end, list) else [end])


def _forbidden(model: PreTrainedModel) -> list[int]:
    settings = model.generation_config
    return [*(word[0] for word in settings.bad_words_ids or ()), *(settings.suppress_tokens or ())]


def _padded(rows: Sequence[Sequence[int]], length: int, padding: int) -> Tensor:
    filled = torch.full((len(rows), length), padding)
    for index, row in enumerate(rows):
        filled[index, : min(len(row), length)] = torch.tensor(list(row[:length]), dtype=torch.long)
    return filled
