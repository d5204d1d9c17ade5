"""Tokenizers made on the spot: one token per word, byte-level BPE, SentencePiece."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import M2M100Tokenizer, PreTrainedTokenizerFast


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


def mixed_lines(count: int = 400) -> list[str]:
    import random

    draw = random.Random(1)
    words = (
        "the",
        "little",
        "girl",
        "Mädchen",
        "straße",
        "été",
        "2024",
        "f(1)",
        "don't",
        "日本",
        "🙂",
        "a  b",
        "A-B",
        "\t",
    )
    return [" ".join(draw.choice(words) for _ in range(draw.randint(1, 9))) for _ in range(count)]


def byte_level_tokenizer(
    size: int = 320, *, digits: bool = False, split: str | None = None, ignore_merges: bool = False
) -> PreTrainedTokenizerFast:
    """Byte-level BPE as GPT-2 has it, learned on a few lines.

    digits: each on its own, as SmolLM has it. split: the regular expression that cuts text into words, as Llama 3 and
    Qwen2 have it. ignore_merges: words that are tokens are taken whole, as in Llama 3.
    """
    inner = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    before = [pre_tokenizers.Digits(True)] if digits else []
    before += [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    inner.pre_tokenizer = pre_tokenizers.Sequence([*before, level]) if before else level
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|end|>", "<|start|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(mixed_lines(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<|start|>", eos_token="<|end|>")


def sentencepiece_tokenizer(size: int = 320) -> PreTrainedTokenizerFast:
    """BPE with bytes for unknown characters as Llama 2 has it, every text after <s>."""
    learned = Tokenizer(models.BPE())
    spaces = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    learned.normalizer = normalizers.Sequence(spaces)
    learned.train_from_iterator(
        ["the little girl saw a little dog"] * 9, trainers.BpeTrainer(vocab_size=60, show_progress=False)
    )
    model = json.loads(learned.to_str())["model"]
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    vocabulary = {word: number for number, word in enumerate(words[:size])}
    inner = Tokenizer(
        models.BPE(
            vocabulary, [tuple(pair) for pair in model["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    inner.normalizer = normalizers.Sequence(spaces)
    inner.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def m2m_100(folder: Path, texts: Sequence[str]) -> M2M100Tokenizer:
    """SentencePiece with a language before each text, English to German; it does not list languages as special."""
    import sentencepiece

    (folder / "texts.txt").write_text("\n".join(texts))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "texts.txt"), model_prefix=str(folder / "m"), vocab_size=120, hard_vocab_limit=False,
        bos_id=0, pad_id=1, eos_id=2, unk_id=3, minloglevel=2,
    )  # fmt: skip
    inner = sentencepiece.SentencePieceProcessor(model_file=str(folder / "m.model"))
    vocabulary = {inner.id_to_piece(number): number for number in range(inner.get_piece_size())}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    return M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "m.model"), src_lang="en", tgt_lang="de")
