"""Language: what the invented languages share. Each turns what a sentence says into words of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import chain

from headcount.corpora.grammar import lexicon
from headcount.corpora.grammar.stems import Stems
from headcount.corpora.grammar.syntax import Clause, Nominal, Sentence
from headcount.registry import Registry

DETERMINERS = ("this", "that", "some", "every", "no", *lexicon.NUMERALS)
SAME = {"these": "this", "those": "that"}
OWNERS = ("my", "your", "our")


class Language(ABC):
    """An invented language; words that are not particles come from its stems."""

    name: str
    about: str

    def __init__(self, stems: Stems) -> None:
        self.stems = stems
        self.stems.add(
            list(
                chain(
                    (noun.name for noun in lexicon.nouns()),
                    (verb.name for verb in lexicon.verbs()),
                    lexicon.ADJECTIVES,
                    lexicon.MANNER,
                    chain.from_iterable(lexicon.TIMES.values()),
                    lexicon.DEGREES,
                    lexicon.PLACE_PREPOSITIONS,
                    lexicon.SUBORDINATORS,
                    lexicon.CONJUNCTIONS,
                    DETERMINERS,
                    OWNERS,
                )
            )
        )

    def translate(self, sentence: Sentence) -> str:
        words = self._sentence(sentence)
        sign = {"statement": ".", "question": "?", "command": "!"}[sentence.main.mood]
        text = " ".join(words).replace(" , ,", " ,").replace(" ,", ",").rstrip(",") + sign
        return text[0].upper() + text[1:]

    def _sentence(self, sentence: Sentence) -> list[str]:
        main = self.clause(sentence.main, "main")
        if sentence.called:
            return [*self.nominal(sentence.called), ",", *main]
        if sentence.subordinate:
            below = [self.stems[sentence.subordinator], *self.clause(sentence.subordinate, "below")]
            return [*below, ",", *main] if sentence.first else [*main, ",", *below]
        if sentence.second:
            return [*main, ",", self.stems[sentence.conjunction], *self.clause(sentence.second, "main")]
        return main

    @abstractmethod
    def clause(self, clause: Clause, place: str) -> list[str]:
        """place: main, below (subordinate), said (what somebody says or thinks) or relative."""

    @abstractmethod
    def nominal(self, nominal: Nominal) -> list[str]:
        """Somebody or something that is called, outside any clause."""


languages: Registry[Callable[[], Language]] = Registry("language", "headcount.corpora.grammar.languages", "LANGUAGE")
