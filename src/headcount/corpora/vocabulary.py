"""Vocabularies: byte-pair encoding learned from parallel text, in the format of Marian tokenizers.

source.spm vocab.json              pieces of the source language
target.spm target_vocab.json       pieces of the target language; with a shared vocabulary both sides use vocab.json
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any

from headcount import journal
from headcount.errors import CorpusError, UsageError

END, UNKNOWN, PADDING = 0, 1, 2  # the same ids on both sides: a Marian config has one of each
_MOST_SENTENCES = 2_000_000  # more do not change the pieces
_SEGMENTED = 10_000  # sentences segmented at a time


def learn_vocabulary(
    source: Iterable[str],
    target: Iterable[str],
    folder: str | Path,
    *,
    size: int | tuple[int, int] = 8000,
    shared: bool = False,
    lowercase: bool = False,
) -> Any:
    """Learn pieces from both sides of parallel text, write them to a folder and return the tokenizer.

    size: pieces to learn for each side, or for (source, target); fewer if the text has no more. Pieces that do not
        occur in the segmented text (intermediate merges) get no id: nothing could train them.
    shared: one vocabulary for both sides.
    lowercase: fold case, so that the model never sees capitals.
    """
    sizes = (size, size) if isinstance(size, int) else tuple(size)
    if len(sizes) != 2 or min(sizes) < 8:
        raise UsageError(
            f"The vocabulary size must be at least 8, as one number or one for each language; got {size!r}."
        )
    sides = [chain(source, target)] if shared else [source, target]
    learned = [_learn(texts, pieces, lowercase) for texts, pieces in zip(sides, sizes, strict=False)]
    with journal.new_folder(folder) as fresh:
        for name, vocabulary, (model, ids) in zip(
            ("source", "target"), ("vocab.json", "target_vocab.json"), learned * 2 if shared else learned, strict=True
        ):
            (fresh / f"{name}.spm").write_bytes(model)
            (fresh / vocabulary).write_text(json.dumps(ids, ensure_ascii=False, indent=0), encoding="utf-8")
        _marian(fresh, shared).save_pretrained(fresh)
        if shared:
            (fresh / "target_vocab.json").unlink()
    return _marian(Path(folder), shared)


def _learn(texts: Iterable[str], size: int, lowercase: bool) -> tuple[bytes, dict[str, int]]:
    """A SentencePiece model and the ids of its pieces."""
    sentences = list(islice(texts, _MOST_SENTENCES))
    if not any(text.strip() for text in sentences):
        raise CorpusError("A vocabulary cannot be learned: the training text is empty.")
    model = _pieces(sentences, size, lowercase)
    return model, _ids(model, sentences)


def _pieces(sentences: list[str], size: int, lowercase: bool) -> bytes:
    """A SentencePiece model of `size` pieces, or of as many as the text has."""
    import sentencepiece

    def train(pieces: int) -> bytes:
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=written,
            model_type="bpe",
            vocab_size=pieces,
            character_coverage=1.0,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            eos_id=END,
            unk_id=UNKNOWN,
            pad_id=PADDING,
            bos_id=-1,
            minloglevel=2,
        )
        return written.getvalue()

    try:
        return train(size)
    except RuntimeError as error:
        most = re.search(r"set it to a value <= (\d+)", str(error))
        if most:
            return train(int(most[1]))
        least = re.search(r"smaller than required_chars\W+(\d+) vs (\d+)", str(error))
        reason = f"the text has more different characters ({least[2]}) than pieces asked for" if least else str(error)
        raise CorpusError(f"Cannot learn a vocabulary of {size} pieces: {reason}.") from error


def _ids(model: bytes, sentences: list[str]) -> dict[str, int]:
    """Special pieces, single characters and pieces that occur in the segmented text, numbered in the model's order."""
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    occurring: set[int] = set()
    for start in range(0, len(sentences), _SEGMENTED):
        occurring.update(chain.from_iterable(pieces.encode(sentences[start : start + _SEGMENTED])))
    names = [pieces.id_to_piece(number) for number in range(pieces.get_piece_size())]
    used = (name for number, name in enumerate(names) if number <= PADDING or len(name) == 1 or number in occurring)
    return {name: index for index, name in enumerate(used)}


def _marian(folder: Path, shared: bool) -> Any:
    from transformers import MarianTokenizer

    files = {
        "source_spm": str(folder / "source.spm"),
        "target_spm": str(folder / "target.spm"),
        "vocab": str(folder / "vocab.json"),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
        if shared:
            return MarianTokenizer(**files)
        return MarianTokenizer(**files, target_vocab_file=str(folder / "target_vocab.json"), separate_vocabs=True)
