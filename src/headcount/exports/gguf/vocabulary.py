"""Conversion of a tokenizer to the vocabulary of llama.cpp: tokens, merges and special tokens.

For byte-level BPE, llama.cpp selects its pre-tokenizer by name; the name is found by comparing the rules in
tokenizer.json. SentencePiece BPE merges by token scores, which are computed from the order of the merges.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headcount.exports.runtime import Obstacle

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Regular expression of a byte-level pre-tokenizer -> its name in llama.cpp.
_SPLITS = {
    _CONTRACTIONS + r"|\p{N}{1,3}" + _TAIL: "llama-bpe",
    _CONTRACTIONS + r"|\p{N}" + _TAIL: "qwen2",
}
_SPACE = "\u2581"
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE_TYPE = 1, 2, 3, 4, 5, 6
_NEVER_MERGED = -1e9


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary in a GGUF file.

    Attributes:
        model: "gpt2" for byte-level BPE, "llama" for SentencePiece.
        pre: Name of the pre-tokenizer in llama.cpp.
        tokens: Text of each token.
        types: GGUF type of each token.
        scores: Score of each token. None for byte-level BPE.
        merges: Merges in order. None for SentencePiece.
        space_prefix: Whether a space is added before a text.
    """

    model: str
    pre: str
    tokens: list[str]
    types: list[int]
    scores: list[float] | None
    merges: list[str] | None
    space_prefix: bool


def obstacle(tokenizer: PreTrainedTokenizerBase) -> Obstacle | None:
    """Return why llama.cpp does not support a tokenizer, or None if it does."""
    if tokenizer is None:
        return Obstacle("a GGUF file holds the vocabulary too", "Pass the tokenizer, or save it beside the model")
    if not getattr(tokenizer, "is_fast", False):
        return Obstacle(f"{type(tokenizer).__name__} has no tokenizer.json", "Save it as a fast tokenizer")
    rules = _rules(tokenizer)
    if rules["model"]["type"] != "BPE":
        return Obstacle(
            f"its tokenizer is of the kind {rules['model']['type']}",
            "llama.cpp reads byte-level BPE and SentencePiece BPE for these models",
        )
    if not rules["model"]["merges"]:
        return Obstacle("its tokenizer has no merges", "llama.cpp loads no vocabulary of bytes alone")
    if not _is_sentencepiece(rules) and _split_name(rules) is None:
        return Obstacle(
            "its tokenizer splits text by rules that llama.cpp has no name for here",
            f"Known are those of gpt-2, smollm, {', '.join(_SPLITS.values())}",
        )
    return None


def vocabulary(tokenizer: PreTrainedTokenizerBase, size: int) -> Vocabulary:
    """Return the vocabulary of a tokenizer that has no obstacle.

    Args:
        tokenizer: The tokenizer.
        size: Number of rows of the model's embedding.
    """
    rules = _rules(tokenizer)
    sentencepiece = _is_sentencepiece(rules)
    tokens, types = _tokens(rules, size, sentencepiece=sentencepiece)
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in rules["model"]["merges"]]
    return Vocabulary(
        model="llama" if sentencepiece else "gpt2",
        pre="default" if sentencepiece else str(_split_name(rules)),
        tokens=tokens,
        types=types,
        scores=_scores(tokens, merges) if sentencepiece else None,
        merges=None if sentencepiece else merges,
        space_prefix=sentencepiece and _prepends_space(rules),
    )


def notes(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Describe the differences between the tokenization of llama.cpp and that of the tokenizer."""
    if tokenizer is None or not _nfc(_rules(tokenizer)):
        return []
    return ["the tokenizer brings text into the Unicode form NFC first, llama.cpp does not"]


def special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Return the ids of the special tokens that the tokenizer has, by their GGUF names."""
    names = {"bos": "bos_token_id", "eos": "eos_token_id", "unk": "unk_token_id", "pad": "pad_token_id"}
    numbers = {name: getattr(tokenizer, attribute, None) for name, attribute in names.items()}
    return {name: int(number) for name, number in numbers.items() if number is not None}


def frames(tokenizer: PreTrainedTokenizerBase) -> tuple[bool, bool]:
    """Return whether the tokenizer adds a BOS token before a text, and whether it adds an EOS token after it."""
    ids = list(tokenizer("a").input_ids)
    bare = list(tokenizer("a", add_special_tokens=False).input_ids)
    added = len(ids) > len(bare)
    return added and ids[0] == tokenizer.bos_token_id, added and ids[-1] == tokenizer.eos_token_id


def _rules(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    rules: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    return rules


def _steps(part: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """Return the steps of a normalizer or pre-tokenizer, which may be a sequence or a single step."""
    if part is None:
        return []
    return list(part[key]) if part["type"] == "Sequence" else [part]


def _is_sentencepiece(rules: dict[str, Any]) -> bool:
    return bool(rules["model"].get("byte_fallback")) and "<0x00>" in rules["model"]["vocab"]


def _prepends_space(rules: dict[str, Any]) -> bool:
    normalizers = _steps(rules["normalizer"], "normalizers")
    if any(step["type"] == "Prepend" and step["prepend"] == _SPACE for step in normalizers):
        return True
    steps = _steps(rules["pre_tokenizer"], "pretokenizers")
    return any(step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never" for step in steps)


def _nfc(rules: dict[str, Any]) -> bool:
    return any(step["type"] == "NFC" for step in _steps(rules["normalizer"], "normalizers"))


def _split_name(rules: dict[str, Any]) -> str | None:
    """Return the llama.cpp name of the pre-tokenizer of a byte-level tokenizer, or None if there is none."""
    if any(step["type"] != "NFC" for step in _steps(rules["normalizer"], "normalizers")):
        return None
    *before, last = _steps(rules["pre_tokenizer"], "pretokenizers") or [{"type": "none"}]
    if last["type"] != "ByteLevel" or last["add_prefix_space"]:
        return None
    if not before:
        return "gpt-2" if last["use_regex"] else None
    if len(before) > 1:
        return None
    if before[0]["type"] == "Digits":
        return "smollm" if before[0]["individual_digits"] and last["use_regex"] else None
    pattern = before[0].get("pattern", {}).get("Regex") if before[0]["type"] == "Split" else None
    return None if last["use_regex"] else _SPLITS.get(str(pattern))


def _tokens(rules: dict[str, Any], size: int, *, sentencepiece: bool) -> tuple[list[str], list[int]]:
    """Return the text and type of every token; embedding rows without a token have the type unused."""
    tokens, types = [f"[PAD{number}]" for number in range(size)], [_UNUSED] * size
    for text, number in rules["model"]["vocab"].items():
        if number < size:
            tokens[number] = text
            types[number] = _BYTE_TYPE if sentencepiece and _BYTE.fullmatch(text) else _NORMAL
    for token in rules["added_tokens"]:
        number, text = token["id"], token["content"]
        if number < size:
            tokens[number] = text
            types[number] = _CONTROL if token["special"] else _USER_DEFINED
    unknown = rules["model"].get("unk_token")
    if sentencepiece and unknown in tokens:
        types[tokens.index(unknown)] = _UNKNOWN
    return tokens, types


def _scores(tokens: list[str], merges: list[str]) -> list[float]:
    """Return the score of each token: minus the index of the first merge that produces it."""
    places: dict[str, int] = {}
    for index, pair in enumerate(merges):
        places.setdefault(pair.replace(" ", ""), index)
    return [-float(places[token]) if token in places else _NEVER_MERGED for token in tokens]
