"""Heads made to look where a test wants: attention weights replaced as they leave a site, before any tap sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

import headcount as hc
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.tree import Tree

# ids of one sentence, number of its tokens -> [Q, K]
Pattern = Callable[[list[int]], Tensor]
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


@contextmanager
def planted(model: nn.Module, patterns: Mapping[str, Pattern]) -> Iterator[None]:
    """Heads by name look as their patterns say; all others look everywhere alike."""
    ids: list[Tensor] = []
    with ExitStack() as stack:
        for module in (model, model.base_model):
            handle = module.register_forward_pre_hook(
                lambda _, __, named: ids.append(named["input_ids"]), with_kwargs=True
            )
            stack.callback(handle.remove)
        for site in hc.locate(model):
            handle = site.module.register_forward_hook(_replacing(site, patterns, ids))
            stack.callback(handle.remove)
        yield


def _replacing(site: Any, patterns: Mapping[str, Pattern], ids: list[Tensor]) -> Any:
    def hook(_: nn.Module, __: Any, returned: tuple[Any, ...]) -> tuple[Any, ...]:
        place = site.attention.weights
        if returned[place] is None:  # no tap is asking
            return returned
        weights = returned[place].clone()
        for row, sentence in enumerate(ids[-1].tolist()):
            real = [token for token in sentence if token != 0]
            for number, head in enumerate(site.head_names()):
                size = len(real)
                pattern = patterns.get(str(head), everywhere)(real)
                weights[row, number] = 0
                weights[row, number, :size, :size] = pattern
        return (*returned[:place], weights, *returned[place + 1 :])

    return hook


def everywhere(ids: list[int]) -> Tensor:
    return torch.full((len(ids), len(ids)), 1 / len(ids))


def at(places: list[int], size: int, sharpness: float = 0.8) -> Tensor:
    """Each query looks at its place with this weight, at the others alike."""
    weights = torch.full((size, size), (1 - sharpness) / max(1, size - 1))
    for query, key in enumerate(places):
        weights[query] = (1 - sharpness) / max(1, size - 1)
        weights[query, key] = sharpness
    return weights


def offset(by: int) -> Pattern:
    """Looks `by` tokens away; where there is none, at the far end."""
    return lambda ids: at([min(max(1, query + by), len(ids) - 2) for query in range(len(ids))], len(ids))


@cache
def trees(count: int = 150, domain: str = "dialogue") -> tuple[Tree, ...]:
    return tuple(row.tree for row in Grammar("light", domain, train=300).split("dev")[:count])


@cache
def tokenizer(whole: int = 30) -> PreTrainedTokenizerFast:
    """WordPiece with [CLS] and [SEP] over 99 ids: the most frequent words are whole, the others are spelled."""
    from collections import Counter

    counts = Counter(word.lower() for tree in trees(200) for word in tree.words if word.isalpha() and len(word) > 1)
    letters = [chr(code) for code in range(97, 123)]
    pieces = [*SPECIALS, ".", "?", "!", ",", *letters, *(f"##{letter}" for letter in letters)]
    pieces += [word for word, _ in counts.most_common(whole)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def word_tokenizer_of(found: tuple[Tree, ...]) -> PreTrainedTokenizerFast:
    """One token per word of these trees, with [CLS] and [SEP]."""
    words = sorted({word.lower() for tree in found for word in tree.words})
    vocabulary = {piece: number for number, piece in enumerate((*SPECIALS, *words))}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
