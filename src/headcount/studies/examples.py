"""Examples: the attention of every head on a few sentences, for display; weights have three decimals.

Shapes: T tokens, Q queries, K keys, H heads of a site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headcount.corpora.alignment import Pieces, piece_spans, pieces, pieces_of_words
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.hooks import configured_module
from headcount.probes.taps import tapped
from headcount.progress import Progress, silent
from headcount.record import Record, Signature
from headcount.record.results.examples import Dependencies, Example, Examples
from headcount.sites.devices import input_device
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.studies.attention import decoder_ids, spelled

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BLANK = "\u2581"
WEIGHTS = 600_000  # in all examples together: about 3 MB of text


def examples(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Tree | str],
    *,
    targets: Sequence[str | None] | None = None,
    count: int = 4,
    longest: int = 20,
    weights: int = WEIGHTS,
    name: str = "",
    data: str = "",
    progress: Progress = silent,
) -> Record[Examples]:
    """Run the model on the first sentences that are short enough and record every head's attention.

    targets: input of the decoder of an encoder-decoder. By default the model's own output.
    count: most sentences. longest: most tokens of a sentence, so that its map is readable.
    weights: most attention weights of all sentences together, which limits the page; one sentence is always used.
    data: name of the sentences in the signature.
    """
    if count < 1 or longest < 2:
        raise UsageError(f"count must be at least 1 and longest at least 2 tokens; got {count} and {longest}.")
    chosen_rows: list[Example] = []
    used, too_short, too_long = 0, 0, 0
    for index, sentence in enumerate(sentences):
        if len(chosen_rows) == count:
            break
        encoded = pieces(tokenizer, sentence.text if isinstance(sentence, Tree) else sentence)
        if len(encoded.ids) < 2:
            too_short += 1
            continue
        example = _example(model, tokenizer, sentence, encoded, targets[index] if targets else None, longest)
        if example is None:
            too_long += 1
            continue
        used += sum(row.count(" ") + 1 for rows in example.attention.values() for row in rows)
        if chosen_rows and used > weights:
            break
        chosen_rows.append(example)
        progress("looking at examples", len(chosen_rows), count)
    if not chosen_rows:
        raise UsageError(
            f"None of {len(sentences)} sentences has 2 to {longest} tokens; give shorter ones, or `longest`."
        )
    arguments = {"data": data, "count": count, "longest": longest}
    signature = Signature(name, weight_hash(model), arguments=arguments)
    return Record("examples", signature, Examples(tuple(chosen_rows), too_long, too_short))


def _example(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    sentence: Tree | str,
    encoded: Pieces,
    target: str | None,
    longest: int,
) -> Example | None:
    """None if the sentence or its target is too long."""
    text, ids = sentence.text if isinstance(sentence, Tree) else sentence, encoded.ids
    if len(ids) > longest:
        return None
    original: Any = configured_module(model)
    config, device = original.config, input_device(model)
    if not hasattr(config, "vocab_size"):
        raise UsageError(f"{type(original).__name__} does not read text: example sentences need a text model.")
    both = bool(getattr(config, "is_encoder_decoder", False))
    inputs = {"input_ids": torch.tensor([ids], device=device)}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    tokens = {"source": _source_tokens(tokenizer, text, encoded)}
    with evaluating(model):
        if both:
            read_T, written_T = _target(original, tokenizer, inputs, target)
            if len(read_T) > 2 * longest:
                return None
            inputs["decoder_input_ids"] = torch.tensor([read_T], device=device)
            tokens |= {"read": _target_tokens(tokenizer, read_T), "written": _target_tokens(tokenizer, written_T)}
        with tapped(model, "attention") as taps:
            model(**inputs)
    attention: dict[str, tuple[str, ...]] = {}
    for site in locate(model):
        for call in taps.calls(site.key)[:1] if site.num_heads else ():  # none of attention that does not run on texts
            weights_HQK: Tensor = call[0].float().cpu()
            for head, weights_QK in zip(site.head_names(), weights_HQK, strict=True):
                attention[str(head)] = tuple(_row(row) for row in weights_QK.tolist())
    kinds = {site.kind for site in locate(model)}
    return Example(tokens, _sides(kinds, both), _tree(tokenizer, sentence), attention)


def _row(weights: Sequence[float]) -> str:
    return " ".join(f"{weight:.3f}".rstrip("0").rstrip(".") for weight in weights)


def _sides(kinds: set[str], both: bool) -> Mapping[str, tuple[str, ...]]:
    if not both:
        return dict.fromkeys(kinds, ("source", "source"))
    sides = {"encoder": ("source", "source"), "decoder": ("read", "read"), "cross": ("written", "source")}
    return {kind: pair for kind, pair in sides.items() if kind in kinds}


def _target(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, inputs: Mapping[str, Tensor], target: str | None
) -> tuple[list[int], list[int]]:
    """The decoder input, and the target after each token of it."""
    start, ids = decoder_ids(model, tokenizer, inputs, target)
    written = ids or [start]
    return [start, *written[:-1]], written


def _source_tokens(tokenizer: PreTrainedTokenizerBase, text: str, encoded: Pieces) -> tuple[str, ...]:
    """The characters of each token, a blank if it has none; special tokens by name."""
    return tuple(
        spelled(tokenizer, token) if span is None else text[span[0] : span[1]] or BLANK
        for token, span in zip(encoded.ids, encoded.spans, strict=True)
    )


def _target_tokens(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, ...]:
    if hasattr(tokenizer, "_switch_to_target_mode"):  # Marian: two vocabularies, one tokenizer
        tokenizer._switch_to_target_mode()
        try:
            return tuple(spelled(tokenizer, token) for token in ids)
        finally:
            tokenizer._switch_to_input_mode()
    return tuple(spelled(tokenizer, token) for token in ids)


def _tree(tokenizer: PreTrainedTokenizerBase, sentence: Tree | str) -> Dependencies | None:
    if not isinstance(sentence, Tree):
        return None
    words = pieces_of_words(sentence.spans, piece_spans(tokenizer, sentence.text))
    return Dependencies("source", tuple(map(tuple, words)), tuple(sentence.heads), tuple(sentence.relations))
