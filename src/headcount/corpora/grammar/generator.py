"""Random sentences of a domain: written language, or dialogue."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from headcount.corpora.grammar import lexicon
from headcount.corpora.grammar.lexicon import Noun
from headcount.corpora.grammar.syntax import Clause, Nominal, Sentence

Item = TypeVar("Item")


@dataclass(frozen=True)
class Domain:
    """Probabilities of what occurs. The persons of subjects follow Voita et al. 2019: WMT, and subtitles."""

    first_person: float
    second_person: float
    pronoun: float  # third person
    name: float
    adjective: float
    possessor: float
    adverb: float  # in each of three positions
    location: float
    question: float
    command: float
    negated: float


DOMAINS = {
    "written": Domain(0.06, 0.03, 0.10, 0.12, 0.60, 0.12, 0.33, 0.30, 0.08, 0.0, 0.10),
    "dialogue": Domain(0.32, 0.21, 0.15, 0.20, 0.30, 0.08, 0.30, 0.30, 0.30, 0.12, 0.15),
}
_FIRST_RANK = 20  # the word of rank r, from 0, has a probability proportional to 1 / (r + 20)


class Generator:
    """Generates sentences; the same seed gives the same sentences."""

    def __init__(self, domain: str, seed: str) -> None:
        self._domain = DOMAINS[domain]
        self._random = random.Random(seed)

    def sentence(self) -> Sentence:
        topic = self._random.choice(lexicon.TOPICS)
        clause = self._clause()
        self._name_topic(clause, topic)
        return Sentence(clause, topic)

    def _clause(self) -> Clause:
        domain = self._domain
        mood = "command" if self._chance(domain.command) else "statement"
        if mood == "statement" and self._chance(domain.question):
            mood = "question"
        takes_object = self._chance(0.75)
        clause = Clause(
            self._pick(lexicon.verbs(takes_object=takes_object)),
            "present" if mood == "command" else self._random.choice(("present", "past", "future")),
            subject=None if mood == "command" else self._subject(),
            object=self._object() if takes_object else None,
            adverbs=self._adverbs(mood),
            negated=mood != "command" and self._chance(domain.negated),
            mood=mood,
        )
        if self._chance(domain.location):
            self._add_place(clause, self._noun_phrase("place"))
        return clause

    def _name_topic(self, clause: Clause, topic: str) -> None:
        """Replace a noun by a key word of the topic, or add one beside the verb if there is no noun."""
        phrases = [part for part in (clause.subject, clause.object, clause.location) if part and part.noun]
        if phrases:
            phrase = self._random.choice(phrases)
            phrase.noun = self._random.choice(lexicon.keys(topic, _noun(phrase).kind))
            phrase.plural = False
            phrase.determiner = self._random.choice(lexicon.SINGULAR_DETERMINERS)
        else:
            key = self._random.choice(lexicon.keys(topic, "place"))
            self._add_place(clause, Nominal(key, determiner=self._random.choice(lexicon.SINGULAR_DETERMINERS)))

    def _add_place(self, clause: Clause, nominal: Nominal) -> None:
        clause.location, clause.preposition = nominal, self._random.choice(lexicon.PREPOSITIONS)
        clause.location_first = clause.mood == "statement" and self._chance(0.4)

    def _adverbs(self, mood: str) -> dict[str, str]:
        positions = ("end",) if mood == "command" else ("front", "middle", "end")
        filled = [position for position in positions if self._chance(self._domain.adverb)]
        return dict(zip(filled, self._random.sample(lexicon.ADVERBS, len(filled)), strict=True))

    def _subject(self) -> Nominal:
        domain, draw = self._domain, self._random.random()
        if draw < domain.first_person:
            pronoun = self._random.choice(("I", "we"))
            return Nominal(pronoun=pronoun, plural=pronoun == "we")
        if draw < domain.first_person + domain.second_person:
            return Nominal(pronoun="you")
        return self._third_person()

    def _object(self) -> Nominal:
        return self._noun_phrase("thing") if self._chance(0.6) else self._third_person()

    def _third_person(self) -> Nominal:
        if self._chance(self._domain.pronoun):
            pronoun = self._random.choice(("he", "she", "they"))
            return Nominal(pronoun=pronoun, plural=pronoun == "they")
        if self._chance(self._domain.name):
            return Nominal(name=self._pick(lexicon.NAMES))
        return self._noun_phrase("person")

    def _noun_phrase(self, kind: str) -> Nominal:
        phrase = self._simple_phrase(kind)
        if self._chance(self._domain.adjective):
            count = self._random.choice((1, 1, 2, 2, 2))
            phrase.adjectives = self._random.sample(lexicon.ADJECTIVES, count)
            phrase.joined = count == 2 and self._chance(0.5)
        if kind != "place" and self._chance(self._domain.possessor):
            phrase.possessor = self._simple_phrase("person")
        return phrase

    def _simple_phrase(self, kind: str) -> Nominal:
        plural = self._chance(0.45)
        determiners = lexicon.PLURAL_DETERMINERS if plural else lexicon.SINGULAR_DETERMINERS
        bare = plural and self._chance(0.5)
        determiner = "" if bare else self._random.choice(determiners)
        return Nominal(self._pick(lexicon.nouns(kind)), plural=plural, determiner=determiner)

    def _pick(self, items: Sequence[Item]) -> Item:
        return self._random.choices(items, cum_weights=_weights(len(items)))[0]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability


def _noun(phrase: Nominal) -> Noun:
    if phrase.noun is None:
        raise ValueError("this phrase has no noun")
    return phrase.noun


@cache
def _weights(count: int) -> list[float]:
    total, sums = 0.0, []
    for rank in range(count):
        total += 1 / (rank + _FIRST_RANK)
        sums.append(total)
    return sums
