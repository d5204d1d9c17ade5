"""The inputs of a model in a batch of texts, checked. Shapes: B batch, T tokens."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

from torch import Tensor, nn

from headcount.errors import UsageError, check_type
from headcount.hooks import config_of, configured_module
from headcount.sites.devices import input_device
from headcount.sites.inputs import position_limit
from headcount.sites.rotary import forget_widest
from headcount.tasks.soundness import check_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SAMPLE = 100  # texts that are looked at for unknown words
_MOST_COMPARED = 100_000  # texts that are compared with each other: all have to be in memory
_REPEATED = 0.1  # share of repeated examples above which intervals are doubted: 20% make 9% of them wrong, 50% make 17%
_UNKNOWN = 0.2  # share of unknown tokens above which a tokenizer is doubted


def model_inputs(model: nn.Module, batch: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """These entries of a batch on the model's device, with the padding id of the model; what ran before has no effect.

    Decoders that classify read their answer at the last token that is not padding, by its id in the config.
    """
    forget_widest(model)
    check_length(model, batch["input_ids"].shape[1])
    check_ids(model, batch["input_ids"])
    inputs = {name: batch[name] for name in names}
    padding, mask_BT = getattr(config_of(model), "pad_token_id", None), batch.get("attention_mask")
    if padding is not None and padding >= 0 and mask_BT is not None:  # some Llama models have -1 for none
        inputs["input_ids"] = inputs["input_ids"].masked_fill(mask_BT == 0, padding)
    device = input_device(model)
    return {name: value.to(device) for name, value in inputs.items()}


def check_tokenizer(tokenizer: PreTrainedTokenizerBase, max_length: int | None, *, paired: bool = False) -> None:
    """Raise if there is no tokenizer, or if special tokens alone fill a text: tokenizers then truncate nothing."""
    if not callable(tokenizer) or isinstance(tokenizer, type):
        raise UsageError(
            f"tokenizer must be the tokenizer of the model, such as AutoTokenizer.from_pretrained(...); got "
            f"{tokenizer!r}."
        )
    if max_length is not None:
        check_type("max_length", max_length, Integral, "a whole number of tokens, or None")
    special = tokenizer.num_special_tokens_to_add(pair=paired) if max_length is not None else 0
    if max_length is not None and max_length <= special:
        raise UsageError(
            f"max_length must be at least {special + 1}, because the tokenizer adds {special} special tokens to each "
            f"text; got {max_length}."
        )


def warn_of_unknown_words(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> None:
    """Warn if many tokens are unknown: the tokenizer may be that of another model, with ids that happen to fit."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    ids = [token for text in texts[:_SAMPLE] for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
    share = ids.count(unknown) / max(1, len(ids))
    if share > _UNKNOWN:
        warnings.warn(
            f"{share:.0%} of the tokens of {min(len(texts), _SAMPLE)} texts are {tokenizer.unk_token}, words that the "
            "tokenizer does not know. Is it the tokenizer of this model, and are the texts in its language?",
            stacklevel=4,
        )


def warn_of_repeats(examples: Sequence[Hashable]) -> None:
    """Warn if many examples are copies of others: every interval and p-value takes examples as independent."""
    sample = examples[:_MOST_COMPARED]
    share = 1 - len(set(sample)) / max(1, len(sample))
    if share > _REPEATED:
        warnings.warn(
            f"{share:.0%} of {len(sample)} texts are the same as others. Each counts as one more text: if they "
            "are copies, intervals are too narrow and p-values too small. Give every text once.",
            stacklevel=4,
        )


def check_length(model: nn.Module, length: int, *, hint: str = "") -> None:
    """Raise if texts are longer than the model's table of positions. hint: what to do, by default to truncate."""
    limit = position_limit(model)
    if limit is not None and length > limit:
        hint = hint or f"Truncate longer texts: max_length={limit}, or --max-length {limit} on the command line."
        name = type(configured_module(model)).__name__
        raise UsageError(f"A text has {length} tokens, but {name} has positions for {limit}. {hint}")
