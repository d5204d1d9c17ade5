"""Parsing: dependency trees of plain text by spaCy or Stanza.

Both are optional. ClearNLP labels of spaCy's English models are converted to those of Universal Dependencies if there
is a one-to-one mapping; passive subjects count as subjects, as in a treebank without subtypes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

from headcount.corpora.tree import Tree, person_of
from headcount.errors import CorpusError, check_name

# https://github.com/clir/clearnlp-guidelines against https://universaldependencies.org/u/dep/
_UNIVERSAL = {"dobj": "obj", "nsubjpass": "nsubj", "csubjpass": "csubj", "neg": "advmod", "dative": "iobj"}
PARSERS = ("spacy", "stanza")


def parsed(texts: Iterable[str], parser: str) -> Iterator[Tree]:
    """Trees of texts, one per sentence that the parser finds.

    parser: `spacy` or `stanza`, optionally with a model: spacy:en_core_web_sm (default), stanza:en (default).
    """
    name, _, model = parser.partition(":")
    check_name("parser", name, PARSERS)
    return _spacy(texts, model or "en_core_web_sm") if name == "spacy" else _stanza(texts, model or "en")


def _spacy(texts: Iterable[str], model: str) -> Iterator[Tree]:
    spacy = _installed("spacy")
    try:
        pipeline = spacy.load(model)
    except OSError as error:
        raise CorpusError(f"spaCy has no model {model!r}: python -m spacy download {model}. ({error})") from error
    for document in pipeline.pipe(texts):
        for sentence in document.sents:
            words = [token for token in sentence if not token.is_space]
            if words:
                yield _of_spacy(document.text, words)


def _of_spacy(text: str, tokens: list[Any]) -> Tree:
    start, number_of = tokens[0].idx, {token.i: number for number, token in enumerate(tokens)}
    end = tokens[-1].idx + len(tokens[-1].text)
    heads = tuple(-1 if token.head.i == token.i else number_of.get(token.head.i, -1) for token in tokens)
    return Tree(
        text=text[start:end],
        words=tuple(token.text for token in tokens),
        spans=tuple((token.idx - start, token.idx - start + len(token.text)) for token in tokens),
        heads=heads,
        relations=tuple(_relation(token.dep_, head) for token, head in zip(tokens, heads, strict=True)),
        tags=tuple(token.pos_ for token in tokens),
        persons=tuple(person_of(str(token.morph)) for token in tokens),
    )


def _stanza(texts: Iterable[str], language: str) -> Iterator[Tree]:
    stanza = _installed("stanza")
    try:
        pipeline = stanza.Pipeline(language, processors="tokenize,mwt,pos,lemma,depparse", verbose=False)
    except Exception as error:  # a missing model is reported in several ways
        raise CorpusError(f"Stanza has no model for {language!r}: stanza.download({language!r}). ({error})") from error
    for text in texts:
        for sentence in pipeline(text).sentences:
            yield _of_stanza(text, sentence)


def _of_stanza(text: str, sentence: Any) -> Tree:
    spans: list[tuple[int, int]] = []
    for token in sentence.tokens:  # words of a contraction share its span
        spans += [(token.start_char, token.end_char)] * len(token.words)
    start, end = spans[0][0], spans[-1][1]
    heads = tuple(int(word.head) - 1 for word in sentence.words)
    return Tree(
        text=text[start:end],
        words=tuple(word.text for word in sentence.words),
        spans=tuple((begin - start, last - start) for begin, last in spans),
        heads=heads,
        relations=tuple(_relation(word.deprel, head) for word, head in zip(sentence.words, heads, strict=True)),
        tags=tuple(word.upos or "" for word in sentence.words),
        persons=tuple(person_of(word.feats or "") for word in sentence.words),
    )


def _relation(label: str, head: int) -> str:
    if head < 0:
        return "root"
    bare = label.split(":", 1)[0]
    return _UNIVERSAL.get(bare, bare)


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CorpusError(
            f"Parsing with {name} needs the package {name}: pip install {name}. Or give a treebank (*.conllu)."
        ) from error
