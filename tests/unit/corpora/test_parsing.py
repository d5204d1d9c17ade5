"""Parsing with spaCy and Stanza: through stand-ins with their interfaces, and without them installed."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from headcount.corpora.parsing import parsed
from headcount.corpora.sentences import read_sentences
from headcount.errors import CorpusError, UnknownName

WORDS = [("Dogs", "chase", "nsubj", "NOUN"), ("chase", "chase", "ROOT", "VERB"), ("cats", "chase", "dobj", "NOUN")]

MORPH = {"NOUN": "", "VERB": "Number=Plur|Person=3"}


def fake_spacy() -> Any:
    module: Any = ModuleType("spacy")

    class Document:
        def __init__(self, text: str) -> None:
            self.text, tokens, cursor = text, [], 0
            for number, (word, _, relation, tag) in enumerate(WORDS):
                start = text.index(word, cursor)
                cursor = start + len(word)
                tokens.append(
                    SimpleNamespace(
                        text=word, idx=start, i=number, dep_=relation, pos_=tag, morph=MORPH[tag], is_space=False
                    )
                )
            for token, (_, head, _, _) in zip(tokens, WORDS, strict=True):
                token.head = next(other for other in tokens if other.text == head)
            self.sents = [tokens]

    def load(name: str) -> Any:
        if name != "en_core_web_sm":
            raise OSError(f"[E050] Can't find model '{name}'")
        return SimpleNamespace(pipe=lambda texts: (Document(text) for text in texts))

    module.load = load
    return module


def fake_stanza() -> Any:
    module: Any = ModuleType("stanza")

    class Pipeline:
        def __init__(self, language: str, **_: Any) -> None:
            if language != "en":
                raise FileNotFoundError("resources.json")

        def __call__(self, text: str) -> Any:
            tokens, cursor, words = [], 0, []
            for word, head, relation, tag in WORDS:
                start = text.index(word, cursor)
                cursor = start + len(word)
                place = next(number for number, row in enumerate(WORDS, start=1) if row[0] == head)
                label = {"dobj": "obj", "ROOT": "root"}.get(relation, "nsubj:pass")
                one = SimpleNamespace(
                    text=word, head=0 if relation == "ROOT" else place, deprel=label, upos=tag, feats=MORPH[tag]
                )
                words.append(one)
                tokens.append(SimpleNamespace(start_char=start, end_char=cursor, words=[one]))
            return SimpleNamespace(sentences=[SimpleNamespace(tokens=tokens, words=words)])

    module.Pipeline = Pipeline
    return module


@pytest.mark.parametrize(("name", "make"), [("spacy", fake_spacy), ("stanza", fake_stanza)])
def test_trees_speak_universal_dependencies(
    name: str, make: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setitem(sys.modules, name, make())
    (tmp_path / "lines.txt").write_text("Dogs  chase cats\n")
    (tree,) = read_sentences(tmp_path / "lines.txt", parser=name)
    assert tree.words == ("Dogs", "chase", "cats")
    assert [tree.text[start:end] for start, end in tree.spans] == list(tree.words)
    assert tree.heads == (1, -1, 1)
    assert tree.relations == ("nsubj", "root", "obj")
    assert tree.tags == ("NOUN", "VERB", "NOUN")
    assert tree.persons == ("", "3", "")
    with pytest.raises(CorpusError, match="no model"):
        list(parsed(["x"], f"{name}:xx"))


@pytest.mark.parametrize("name", ["spacy", "stanza"])
def test_a_missing_parser_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CorpusError, match=f"pip install {name}"):
        list(parsed(["Dogs chase cats"], name))


def test_unknown_parser() -> None:
    with pytest.raises(UnknownName, match="spacy"):
        parsed([], "spaccy")
