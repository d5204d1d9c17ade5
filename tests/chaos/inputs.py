"""Create the models and data for the commands: an encoder, a classifier, a translator, a decoder and texts."""

from __future__ import annotations

from pathlib import Path

import records
import zoo
from chaos.commands import COMMANDS
from tokens import byte_level_tokenizer, sentences, word_tokenizer

_SETTINGS = """\
train_limit = 40
followed = 2
random = 1
step = 0.5
orders = ["gradient"]
role_limit = 10
batches = [1]
lengths = [8]
repeats = 1
keep = [3]
ways = ["l0", "random"]
gate_steps = 2
tune_steps = 2
scratch_steps = 2
all_kinds_keep = [4]
all_kinds_ways = ["l0"]
"""


_WORDS = 3  # per sentence to translate: an untrained model generates twice as many tokens


def make(folder: Path) -> None:
    """Create all inputs except the translation model, which is trained by the command in `TRANSLATOR`."""
    folder.mkdir(parents=True)
    _texts(folder)
    _models(folder)
    records.SAMPLES["ablation-map"][0].save(folder / "records" / "ablation.json")
    (folder / "small.toml").write_text(_SETTINGS)


TRANSLATOR = ("marian", COMMANDS["train translation"].arguments("marian"))


def _models(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    import headcount as hc

    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    torch.manual_seed(0)
    encoder = BertModel(BertConfig(vocab_size=99, **size))
    classifier = BertForSequenceClassification(
        BertConfig(vocab_size=99, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1}, **size)
    )
    hc.save(encoder, folder / "encoder", tokenizer=word_tokenizer())
    hc.save(classifier, folder / "bert", tokenizer=word_tokenizer())
    llama = zoo.build("llama")
    llama.resize_token_embeddings(320)
    hc.save(llama, folder / "llama", tokenizer=byte_level_tokenizer())


def _texts(folder: Path) -> None:
    import laboratory

    for name in ("data", "texts", "pairs"):
        (folder / name).mkdir()
    for split, count in (("train", 60), ("dev", 20), ("test", 20)):
        texts = sentences(count, seed=len(split) + count)
        rows = [f"{'good' if 'w1' in text else 'bad'}\t{text}" for text in texts]
        (folder / "data" / f"{split}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
        (folder / "texts" / f"{split}.txt").write_text("\n".join(texts) + "\n")
    for split, pairs in laboratory.parallel(60, 12).splits.items():
        for language, side in (("en", "source"), ("xx", "target")):
            short = (" ".join(text.split()[:_WORDS]) for text in pairs[side])
            (folder / "pairs" / f"{split}.{language}").write_text("\n".join(short) + "\n")
    (folder / "trees.conllu").write_text("\n".join(_tree(words) for words in _SENTENCES) + "\n")


_SENTENCES = tuple(
    f"{article} {noun} {verb}".split()
    for article in ("the", "a") for noun in ("dog", "king") for verb in ("sees", "sleeps")
)  # fmt: skip


def _tree(words: list[str]) -> str:
    """Return a sentence of article, subject and verb in CoNLL-U."""
    rows = ((1, words[0], "DET", 2, "det"), (2, words[1], "NOUN", 3, "nsubj"), (3, words[2], "VERB", 0, "root"))
    return "".join(
        f"{number}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_\n" for number, word, tag, head, relation in rows
    )
