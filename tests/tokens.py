"""A tokenizer made on the spot: one token per word."""

from __future__ import annotations

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast


def word_tokenizer(
    size: int = 99, *, left: bool = False, mask: str | None = None, framed: bool = False
) -> PreTrainedTokenizerFast:
    """Words w3 to w98 (and <pad>, <s>, </s>), padded on the side asked for.

    mask: the word that serves as mask token. framed: every text stands between <s> and </s>.
    """
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in range(3, size)}}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="w3"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if framed:
        inner.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        mask_token=mask,
        padding_side="left" if left else "right",
    )


def sentences(count: int, *, seed: int = 0, shortest: int = 2, longest: int = 9) -> list[str]:
    import random

    draw = random.Random(seed)
    return [" ".join(f"w{draw.randint(3, 98)}" for _ in range(draw.randint(shortest, longest))) for _ in range(count)]
