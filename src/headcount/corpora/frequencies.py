"""Token frequencies: how often each token occurs in the training data of a model, or an estimate of it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.corpora.conllu import read_conllu
from headcount.corpora.lines import read_lines
from headcount.corpora.plain import check_lines
from headcount.corpora.tables import json_type, parse_json
from headcount.errors import CorpusError, UsageError, check_type

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PAPER_COMMON, PAPER_TYPES = 500, 32_000  # Voita et al. 2019, section 5.3 and appendix B: 500 of about 32,000 are common


class Frequencies:
    """Counts and ranks by token id. A token that never occurred is rarer than all others."""

    def __init__(self, counts: Mapping[int, float], *, source: str, skipped: Counter[str] | None = None) -> None:
        """skipped: number of skipped texts by reason."""
        if not counts:
            raise UsageError(f"No token has a frequency ({source}): the rare role needs token frequencies.")
        self.source, self.skipped = source, skipped or Counter[str]()
        self._counts = dict(counts)
        ordered = sorted(set(self._counts.values()), reverse=True)
        ranks: dict[float, int] = {}
        above, sizes = 0, Counter(self._counts.values())
        for count in ordered:
            ranks[count] = above + 1
            above += sizes[count]
        self._ranks, self._last = ranks, above + 1
        self._never = min(0.0, ordered[-1] - 1)

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, token: object) -> bool:
        return token in self._counts

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(repr(sorted(self._counts.items())).encode(), digest_size=20).hexdigest()

    @property
    def common(self) -> int:
        """Number of most frequent tokens that count as common; the others are rare. 500 of 32,000, as in the paper.

        Other numbers of types scale so that common tokens are the same share of running text, by Zipf's law:
        log(common) / log(types) is the paper's. See docs/decisions/016.
        """
        return round(len(self) ** (math.log(PAPER_COMMON) / math.log(PAPER_TYPES)))

    def count(self, token: int) -> float:
        return self._counts.get(token, self._never)

    def rank(self, token: int) -> int:
        """1 for the most frequent token; equal counts share the better rank."""
        return self._ranks[self._counts[token]] if token in self._counts else self._last

    def table(self, size: int) -> np.ndarray:
        """[2, size]: count and rank of the tokens 0 to size."""
        counts_and_ranks = np.empty((2, size))
        counts_and_ranks[0], counts_and_ranks[1] = self._never, self._last
        tokens = [token for token in self._counts if token < size]
        counts_and_ranks[0, tokens] = [self._counts[token] for token in tokens]
        counts_and_ranks[1, tokens] = [self._ranks[self._counts[token]] for token in tokens]
        return counts_and_ranks


def check_frequencies(frequencies: object) -> None:
    """Raise UsageError unless these are token frequencies or None."""
    readers = "headcount.corpora.frequencies: count_tokens(texts, tokenizer) or read_frequencies(file, tokenizer)"
    check_type("frequencies", frequencies, Frequencies | None, f"token frequencies, from {readers}")


def count_tokens(
    texts: Iterable[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    source: str = "corpus",
    chunk: int = 1000,
    skipped: Counter[str] | None = None,
) -> Frequencies:
    """Count the tokens of these texts, without the special tokens that the tokenizer adds.

    skipped: number of texts skipped before, by reason.
    """
    counts: Counter[int] = Counter()
    waiting: list[str] = []
    for text in texts:
        waiting.append(text)
        if len(waiting) == chunk:
            _count(counts, waiting, tokenizer)
            waiting = []
    if waiting:
        _count(counts, waiting, tokenizer)
    return Frequencies(counts, source=source, skipped=skipped)


def _count(counts: Counter[int], texts: list[str], tokenizer: PreTrainedTokenizerBase) -> None:
    for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]:
        counts.update(ids)


def of_tokenizer(tokenizer: PreTrainedTokenizerBase) -> Frequencies:
    """Frequencies estimated from the tokenizer: vocabularies list frequent pieces first, SentencePiece has scores.

    Only the order is meaningful, and it is rough: byte-pair vocabularies are in the order of their merges, by frequency
    at the time of merging, with single letters at one end; others are mostly sorted by frequency.
    """
    scores = _scores(tokenizer)
    special = set(tokenizer.all_special_ids)
    if scores:
        return Frequencies(
            {token: score for token, score in scores.items() if token not in special}, source="tokenizer"
        )
    ids = (token for token in tokenizer.get_vocab().values() if token not in special)
    return Frequencies({token: -float(token) for token in ids}, source="tokenizer")


def _scores(tokenizer: PreTrainedTokenizerBase) -> dict[int, float]:
    """SentencePiece scores (log-probability, or minus the number of the merge) by id; none for other tokenizers."""
    model = getattr(tokenizer, "spm_source", None) or getattr(tokenizer, "sp_model", None)
    if model is None or not hasattr(model, "get_score"):
        return {}
    scores: dict[int, float] = {}
    for number in range(model.get_piece_size()):
        token = tokenizer.convert_tokens_to_ids(model.id_to_piece(number))
        if token is not None and token != tokenizer.unk_token_id:
            scores[int(token)] = float(model.get_score(number))
    return scores


def read_frequencies(path: str | Path, tokenizer: PreTrainedTokenizerBase) -> Frequencies:
    """Read frequencies from a file: .json with {token: count}, .tsv with token and count, or text to count.

    Text is a treebank (.conllu) or plain lines, which tables of other formats are not.
    """
    file = Path(path)
    if not file.is_file():
        raise CorpusError(f"There is no file {file} with frequencies. Give .json, .tsv or plain text.")
    suffix = file.suffix.lower()
    if suffix == ".conllu":
        bank = read_conllu(file, on_error="skip")
        return count_tokens((tree.text for tree in bank), tokenizer, source=str(file), skipped=bank.skipped)
    if suffix not in (".json", ".tsv"):
        check_lines(file, or_else="tokens with their counts (.tsv, .json), or a treebank (.conllu)")
        return count_tokens((line for line in read_lines(file) if line.strip()), tokenizer, source=str(file))
    pairs = _json(file) if suffix == ".json" else _tsv(file)
    vocabulary = tokenizer.get_vocab()
    counts = {vocabulary[token]: count for token, count in pairs.items() if token in vocabulary}
    if not counts:
        examples = ", ".join(map(repr, list(pairs)[:3]))
        raise CorpusError(
            f"No token of {file} ({examples} ...) is in the tokenizer's vocabulary: the file is for another tokenizer."
        )
    return Frequencies(counts, source=str(file), skipped=Counter({"not in the vocabulary": len(pairs) - len(counts)}))


def _json(file: Path) -> dict[str, float]:
    counts = parse_json("\n".join(read_lines(file)), str(file))
    if not isinstance(counts, Mapping):
        raise CorpusError(f"{file} is {json_type(counts)}, expected a JSON object of tokens and counts.")
    return {token: _finite(count, f"{file}, token {token!r:.40},") for token, count in counts.items()}


def _tsv(file: Path) -> dict[str, float]:
    counts: dict[str, float] = {}
    for number, line in enumerate(read_lines(file), start=1):
        if not line.strip():
            continue
        location, cells = f"{file}:{number}", line.split("\t")
        if len(cells) != 2:
            raise CorpusError(f"{location} is {line!r:.60}, expected a token, a tab and its count.")
        if cells[0] in counts:
            raise CorpusError(
                f"{location} repeats the token {cells[0]!r:.40}. Give each token once, with its total count."
            )
        counts[cells[0]] = _finite(cells[1], location)
    return counts


def _finite(count: Any, location: str) -> float:
    """A count as a finite number; in a .tsv file it is text."""
    try:
        value = math.nan if isinstance(count, bool | None) else float(count)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise CorpusError(f"{location} has the count {str(count)!r:.40}, expected a finite number.")
    return value
