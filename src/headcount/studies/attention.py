"""attention: the map of one head on one sentence (Voita et al. 2019, Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headcount.corpora.alignment import pieces
from headcount.corpora.target_language import target_ids
from headcount.errors import UsageError
from headcount.heads import Head
from headcount.hooks import configured_module
from headcount.probes.taps import tapped
from headcount.record import Record, Signature
from headcount.record.results.attention import AttentionMap
from headcount.sites.decoder_input import IGNORED, decoder_input, generation_start
from headcount.sites.devices import input_device
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.tasks.texts import check_length

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_SHORTER = "Attention is shown on the whole text: give a shorter one."


def attention_map(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    *,
    head: str,
    target: str | None = None,
    name: str = "",
) -> Record[AttentionMap]:
    """The attention weights of one head on one sentence, with the tokens on both sides.

    target: input of the decoder of an encoder-decoder, for its heads. By default the model's own output.
    """
    if not text.strip():
        raise UsageError("The text is empty: there are no tokens to show attention for.")
    (located,) = locate(model).find(Head.parse(head))
    original: Any = configured_module(model)
    config = original.config
    both = bool(getattr(config, "is_encoder_decoder", False))
    ids, source = _tokens(tokenizer, text)
    check_length(model, len(ids), hint=_SHORTER)
    inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    device = input_device(model)
    inputs = {key: value.to(device) for key, value in inputs.items()}
    written: list[str] = []
    with evaluating(model):
        if both and located.kind != "encoder":
            read_1T, written = _target(original, tokenizer, inputs, target)
            check_length(model, read_1T.shape[1], hint=_SHORTER)
            inputs["decoder_input_ids"] = read_1T
        runs = original.get_encoder() if both and located.kind == "encoder" else original
        with tapped(model, "attention") as taps:
            runs(**inputs)
    queries, keys = _sides(located.kind, both, source, written)
    site = locate(model)[located.site]
    weights_QK: Tensor = taps.calls(located.site)[0][0, site.heads.index(located.index)].float().cpu()
    weights = tuple(tuple(round(weight, 6) for weight in row) for row in weights_QK.tolist())
    parts = AttentionMap(str(located), text, tuple(queries), tuple(keys), weights)
    arguments = {"head": str(located), "text": text, "target": target}
    return Record("attention", Signature(name, weight_hash(model), arguments=arguments), parts)


def _sides(kind: str, both: bool, source: list[str], written: list[str]) -> tuple[list[str], list[str]]:
    if not both or kind == "encoder":
        return source, source
    return (written[1:], source) if kind == "cross" else (written[:-1], written[:-1])


def _target(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, inputs: Any, target: str | None
) -> tuple[Tensor, list[str]]:
    """The decoder input, and its tokens with the end token; rows of cross-attention are named by the next token."""
    start, ids = decoder_ids(model, tokenizer, inputs, target)
    if not ids:
        raise UsageError("The target is empty: there are no tokens to show attention for.")
    read_1T = torch.tensor([[start, *ids[:-1]]], device=inputs["input_ids"].device)
    return read_1T, ["<start>", *(spelled(tokenizer, token) for token in ids)]


def decoder_ids(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, inputs: Mapping[str, Tensor], target: str | None
) -> tuple[int, list[int]]:
    """The token that a decoder starts with, and the ids of the target; by default of the model's greedy output."""
    if target is not None:
        ids = list(target_ids(tokenizer, target))
        read_1T = decoder_input(torch.tensor([ids or [IGNORED]]), model.config)
        return int(read_1T[0, 0]), ids
    generation_start(model)  # raises if there is none
    most = 2 * inputs["input_ids"].shape[1] + 10
    start, *ids = model.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=most)[0].tolist()
    return start, ids


def _tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[list[int], list[str]]:
    """Ids and readable tokens: the characters of each token, or its name if it has none."""
    encoded = pieces(tokenizer, text)
    texts = [
        text[span[0] : span[1]] if span is not None and span[0] < span[1] else _source_token(tokenizer, token)
        for token, span in zip(encoded.ids, encoded.spans, strict=True)
    ]
    return encoded.ids, texts


def _source_token(tokenizer: PreTrainedTokenizerBase, token: int) -> str:
    if token in tokenizer.all_special_ids:
        return spelled(tokenizer, token)
    return _without_marks(tokenizer.decode([token]))


def spelled(tokenizer: PreTrainedTokenizerBase, token: int) -> str:
    """The entry of the vocabulary, without marks of word boundaries."""
    return _without_marks(tokenizer.convert_ids_to_tokens([token])[0])


def _without_marks(piece: object) -> str:
    return str(piece).strip("\u2581\u0120 ") or str(piece)
