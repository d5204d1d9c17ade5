"""Language: base class of the invented languages. Every word is a proclitic and a stem.

The proclitic of a word consists of three sounds, none of which depends on the word itself:
onset   by the English word before it. Which onset a word triggers is part of the word, as in the mutations of Welsh.
vowel   by the class of its syntactic partner: the verb that governs it, the noun it agrees with.
coda    by the English word after it: liaison, which depends on the word as well.
A stem depends on the sense of its word, and the senses of the words of a sentence on its topic.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from headcount.corpora.grammar import lexicon
from headcount.corpora.grammar.english import Word
from headcount.corpora.grammar.stems import Stems, drawn, respelled
from headcount.registry import Registry

HEAD = "head"


class Language(ABC):
    """An invented language: its sounds, its order of words, and which word each agrees with or is governed by."""

    name: str
    about: str
    onsets: tuple[str, ...]  # first sounds of proclitics; the last one begins a sentence
    vowels: tuple[str, ...]  # one for each class of words
    vowel_alone: str  # of words without a partner
    codas: tuple[str, ...]  # last sounds of proclitics; the last one ends a sentence
    order: Mapping[str, Sequence[str]]  # tag -> relations of its dependents in word order, including HEAD
    plural: str
    tenses: Mapping[str, str]  # endings of verbs
    sounds: tuple[str, str, str]  # onsets, vowels and codas of stems, separated by spaces; "-" is none

    def __init__(self) -> None:
        self.stems = Stems(self.name, *self.sounds, reserved=self.proclitics())
        self.stems.add(list(_senses()))

    def proclitics(self) -> list[str]:
        vowels = (*self.vowels, self.vowel_alone)
        return [onset + vowel + coda for onset in self.onsets for vowel in vowels for coda in self.codas]

    def translate(self, words: Sequence[Word]) -> str:
        root = next(word for word in words if word.head is None)
        return " ".join(
            chain.from_iterable((self._proclitic(word, words), self._form(word)) for word in self._phrase(root, words))
        )

    def partner(self, word: Word, words: Sequence[Word]) -> Word | None:
        """The word whose class decides the vowel of this word's proclitic."""
        if word.relation == "conj" and word.head is not None:
            return word.head.head  # "old and small dogs": both agree with the noun
        if word.relation in ("obj", "advmod", "amod"):
            return word.head
        return dependent(word, "nsubj", words) if word.tag == "VERB" else None

    def word_class(self, sense: str) -> str:
        """The class of a word, which decides the vowel of words that agree with it or are governed by it."""
        return drawn(self.name, sense, self.vowels)

    def _phrase(self, head: Word, words: Sequence[Word]) -> Iterator[Word]:
        """A word with all its descendants in the language's order; relations not in the order come first."""
        order = self.order.get(head.tag, (HEAD,))
        below = [word for word in words if word.head is head]
        for below_head in below:
            if below_head.relation not in order:
                yield from self._phrase(below_head, words)
        for relation in order:
            if relation == HEAD:
                yield head
                continue
            for below_head in below:
                if below_head.relation == relation:
                    yield from self._phrase(below_head, words)

    def _form(self, word: Word) -> str:
        stem = respelled(word.form) if word.tag == "PROPN" else self.stems[word.sense]
        return stem + (self.tenses[word.tense] if word.tense else self.plural if word.plural else "")

    def _proclitic(self, word: Word, words: Sequence[Word]) -> str:
        index = next(number for number, candidate in enumerate(words) if candidate is word)
        onset = drawn("sound", words[index - 1].form, self.onsets) if index else self.onsets[-1]
        last = index + 1 == len(words)
        coda = self.codas[-1] if last else drawn("sound", words[index + 1].form, self.codas)
        partner = self.partner(word, words)
        return onset + (self.word_class(partner.sense) if partner else self.vowel_alone) + coda


def dependent(head: Word, relation: str, words: Sequence[Word]) -> Word | None:
    """The first word that depends on another by a relation."""
    return next((word for word in words if word.head is head and word.relation == relation), None)


def _senses() -> Iterator[str]:
    """Names of everything that has a stem."""
    entries: tuple[lexicon.Noun | lexicon.Verb, ...] = (*lexicon.all_nouns(), *lexicon.all_verbs())
    for entry in entries:
        yield from dict.fromkeys(entry.sense(topic) for topic in lexicon.TOPICS)
    by_register = (
        *lexicon.ADJECTIVES, *lexicon.ADVERBS, *lexicon.PREPOSITIONS, *lexicon.PRONOUNS, "and", "not", "of",
        "statement", "question",  # auxiliaries
        *dict.fromkeys((*lexicon.SINGULAR_DETERMINERS, *lexicon.PLURAL_DETERMINERS)),
    )  # fmt: skip
    yield from (lexicon.in_register(sense, topic) for sense in by_register for topic in lexicon.TOPICS)


languages: Registry[Callable[[], Language]] = Registry("language", "headcount.corpora.grammar.languages", "LANGUAGE")
