"""BLEU from sums: the statistics of each sentence, and the score of any sum of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from headcount.metrics import Metric

_ORDER = 4
COLUMNS = ("hypothesis length", "reference length", *(f"{what} {n}" for what in ("matches", "n-grams") for n in "1234"))
# Scripts without spaces between words: Chinese characters; Japanese kana, Thai, Lao, Tibetan, Burmese and Khmer.
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_OTHERS = re.compile("[\u3040-\u30ff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")


def tokenization(references: Iterable[str]) -> str:
    """How sacrebleu divides these references into words: 13a, at spaces and punctuation, where most have spaces.

    A sentence without spaces would be a single word, and BLEU 0 unless it is repeated exactly. Chinese is divided by zh
    as in sacrebleu, other scripts without spaces into characters.
    """
    letters = han = unspaced = 0
    for text in references:
        letters += sum(map(str.isalpha, text))
        han += len(_HAN.findall(text))
        unspaced += len(_OTHERS.findall(text))
    if han + unspaced <= letters / 2:
        return "13a"
    return "zh" if unspaced < han / 10 else "char"  # Japanese has both; Chinese texts may quote a word of it


def bleu_statistics(
    hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False, tokenize: str = "13a"
) -> tuple[np.ndarray, str]:
    """[N, 10]: statistics of each sentence for corpus BLEU, named in COLUMNS; and the signature of sacrebleu."""
    corpus = BLEU(lowercase=lowercase, tokenize=tokenize)
    metric = BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=True)  # of a sentence's score, not used
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        score = metric.sentence_score(hypothesis, [reference])
        rows.append([score.sys_len, score.ref_len, *score.counts, *score.totals])
    corpus.corpus_score(["a"], [["a"]])  # the signature has the number of references only after use
    return np.array(rows, dtype=np.int64).reshape(len(rows), 2 + 2 * _ORDER), str(corpus.get_signature())


def bleu(sums: np.ndarray) -> np.ndarray:
    """[...]: BLEU, 0 to 100, of summed statistics [..., 10], smoothed as sacrebleu does by default (exp)."""
    sums = np.asarray(sums, dtype=np.float64)
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + _ORDER], sums[..., 2 + _ORDER :]
    # Each order without a match counts half as much as the one before it without a match.
    halvings = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches > 0, matches, 0.5**halvings)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(totals > 0, np.log(smoothed / totals), -np.inf)
        penalty = np.where(length < reference, np.exp(1 - reference / length), 1.0)
        score = 100 * penalty * np.exp(logs.mean(-1))
    return np.where((length > 0) & (matches.sum(-1) > 0), score, 0.0)


def _no_match_or_all(sums: np.ndarray) -> np.ndarray:
    """[1, 2, 10]: sums if no n-gram of the translations had a match, and if all had."""
    none, all_sums = np.array(sums, dtype=np.float64), np.array(sums, dtype=np.float64)
    none[2 : 2 + _ORDER] = 0
    all_sums[0], all_sums[2 : 2 + _ORDER] = all_sums[1], all_sums[2 + _ORDER :]
    return np.stack([none, all_sums])[None]


def _all_match(statistics: np.ndarray) -> np.ndarray:
    matches, totals = statistics[:, 2 : 2 + _ORDER], statistics[:, 2 + _ORDER :]
    return np.asarray((statistics[:, 0] == statistics[:, 1]) & (matches == totals).all(-1))


METRIC = Metric("BLEU", bleu, answers=_no_match_or_all, right=_all_match, lowest=0.0, highest=100.0)
