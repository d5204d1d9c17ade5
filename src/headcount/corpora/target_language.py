"""The language of targets: tokenizers of many languages (NLLB, M2M-100, mBART) write it as a token of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headcount.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def target_ids(tokenizer: PreTrainedTokenizerBase, target: str | Sequence[str], **options: Any) -> Any:
    """The ids of a target text, or of several. Raises if the tokenizer would write the language of the source."""
    source_language = getattr(tokenizer, "src_lang", None)
    if source_language is not None and getattr(tokenizer, "tgt_lang", "") is None:
        raise UsageError(
            f"{type(tokenizer).__name__} writes the language of a text as a token. Its src_lang is {source_language}, "
            "but its tgt_lang is not set, so that targets would be marked as texts of another language. Set both in "
            "tokenizer_config.json, or in AutoTokenizer.from_pretrained(..., src_lang=, tgt_lang=)."
        )
    return tokenizer(text_target=target, **options)["input_ids"]


def language_token(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id of the token of the target language; None if the tokenizer writes none."""
    if not hasattr(tokenizer, "tgt_lang"):
        return None
    ends = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id}
    return next((int(token) for token in target_ids(tokenizer, "") if token not in ends), None)
