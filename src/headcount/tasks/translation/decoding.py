"""Decoding: from source ids to target ids with `generate`, sentences of similar length together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerBase, StoppingCriteriaList

from headcount.corpora.ragged import Ragged
from headcount.corpora.target_language import language_token
from headcount.errors import UsageError
from headcount.hooks import config_of
from headcount.progress import Progress, silent
from headcount.sites.decoder_input import generation_start
from headcount.sites.devices import input_device
from headcount.sites.inputs import position_limit
from headcount.sites.running import evaluating
from headcount.tasks.translation.limits import RowEnds, RowLimits

LENGTH_PENALTY = 0.6
ONE_OUTPUT: Mapping[str, Any] = {  # of each row, as a table of ids, whatever the model's generation_config has
    "do_sample": False, "max_length": None, "num_return_sequences": 1, "return_dict_in_generate": False,
}  # fmt: skip


def by_length(lengths_N: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Row indices in batches of at most `tokens` padded tokens, the longest first, so that memory errors come early."""
    order = np.argsort(-lengths_N, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, int(lengths_N[order[start]])))
        yield order[start : start + size]
        start += size


def decode(
    model: nn.Module,
    source: Ragged,
    *,
    padding: int,
    beams: int = 1,
    length_penalty: float = LENGTH_PENALTY,
    tokens: int = 4096,
    progress: Progress = silent,
) -> list[list[int]]:
    """The model's output for each row, in order; beams=1 is greedy.

    tokens: padded source tokens of a batch, divided by the number of beams.
    """
    if beams < 1:
        raise UsageError(f"beams must be at least 1 (1 is greedy decoding); got {beams}.")
    if not callable(getattr(model, "generate", None)):
        raise UsageError(f"{type(model).__name__} cannot generate: load it with task='translation'.")
    if getattr(config_of(model), "is_encoder_decoder", False):
        generation_start(model)  # raises if there is none
    written_ids: list[list[int]] = [[] for _ in range(len(source))]
    count = 0
    with evaluating(model):
        for rows in by_length(source.lengths, max(1, tokens // beams)):
            # The limit is that of the row, not of its batch: the output does not depend on other rows.
            limits = [most_new_tokens(model, int(source.lengths[row])) for row in rows]
            written = _generate(model, source.padded(rows, padding), source.mask(rows), limits, beams, length_penalty)
            for row, ids, most in zip(rows, written, limits, strict=True):
                written_ids[row] = [ids[0], *cut(model, ids[1:], most)]
            count += len(rows)
            progress("translating", count, len(source))
    return written_ids


def cut(model: PreTrainedModel, ids: list[int], most: int) -> list[int]:
    """An output, without its start token, of so many tokens at most; some models are forced to end there."""
    end, shortened = _forced_end(model), ids[:most]
    if len(ids) <= most or end is None or end in shortened:
        return shortened
    return [*shortened[:-1], end]


def _forced_end(model: PreTrainedModel) -> int | None:
    """The token that outputs are forced to end with at their limit."""
    forced = model.generation_config.forced_eos_token_id
    return forced[0] if isinstance(forced, list) else forced


def check_language(model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise if the tokenizer writes the language of targets as a token, and the model may begin with another one."""
    language, settings = language_token(tokenizer), getattr(model, "generation_config", None)
    starts = [getattr(settings, name, None) for name in ("forced_bos_token_id", "decoder_start_token_id")]
    starts.append(getattr(getattr(model, "config", None), "decoder_start_token_id", None))
    if language is not None and language not in starts:
        name = tokenizer.convert_ids_to_tokens(language)
        raise UsageError(
            f"Targets are marked with the token {name} of their language, but the model may write any language. Set "
            f'"forced_bos_token_id": {language} in generation_config.json (model.generation_config in Python).'
        )


def most_new_tokens(model: PreTrainedModel, source_tokens: int) -> int:
    """Longest output in tokens; a model may never generate the end token."""
    most = getattr(model.config, "max_position_embeddings", None) or _positions_of_decoder(model) or 512
    return int(min(most - 1, 2 * source_tokens + 10))


def _positions_of_decoder(model: PreTrainedModel) -> int | None:
    """Most tokens of the decoder of a model of two models, such as bert2bert; None if there is no limit."""
    decoder = getattr(model, "decoder", None)
    return None if decoder is None else position_limit(decoder)


def _generate(
    model: PreTrainedModel,
    ids_BT: np.ndarray,
    mask_BT: np.ndarray,
    limits: Sequence[int],
    beams: int,
    length_penalty: float,
) -> list[list[int]]:
    """limits: most new tokens of each row. Beams end there; greedy outputs may go on to the largest limit."""
    input_BT, real_BT = (torch.from_numpy(table).to(input_device(model)) for table in (ids_BT, mask_BT))
    beam: dict[str, Any] = {"num_beams": beams}
    if beams > 1:
        most_B, end = torch.tensor(limits) + 1, _forced_end(model)  # with the start token
        beam |= {"length_penalty": length_penalty, "stopping_criteria": StoppingCriteriaList([RowLimits(most_B)])}
        if end is not None:
            beam["logits_processor"] = LogitsProcessorList([RowEnds(most_B, end)])
    output_BT = model.generate(
        input_ids=input_BT, attention_mask=real_BT, max_new_tokens=max(limits), **ONE_OUTPUT, **beam
    )
    return output_BT.tolist()
