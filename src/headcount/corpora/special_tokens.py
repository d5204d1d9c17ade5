"""Special tokens: the ids of a tokenizer that stand for no part of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MARKS = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id", "mask_token_id")


def unknown_word(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id of the token that replaces an unknown word; None if there is none.

    If it also has another meaning, it is a special token like any other: OPT writes its unknown token, </s>, before
    every text.
    """
    unknown = getattr(tokenizer, "unk_token_id", None)
    return None if unknown in {getattr(tokenizer, name, None) for name in _MARKS} else unknown


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Ids of special tokens. The unknown token replaces a word and is not special, whatever the tokenizer says.

    The languages of M2M-100 are special, though its tokenizer does not list them.
    """
    languages = getattr(tokenizer, "lang_token_to_id", {}).values()
    return {int(token) for token in (*tokenizer.all_special_ids, *languages)} - {unknown_word(tokenizer)}
