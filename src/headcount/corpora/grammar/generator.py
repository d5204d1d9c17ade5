"""Random sentences of a domain: long and written, or short as in talk."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from headcount.corpora.grammar import lexicon
from headcount.corpora.grammar.lexicon import Noun, Verb
from headcount.corpora.grammar.syntax import Adjunct, Clause, Nominal, Sentence

Item = TypeVar("Item")


@dataclass(frozen=True)
class Domain:
    """How often what occurs; all are probabilities. Persons follow Voita et al. 2019: WMT, and subtitles."""

    first_person: float
    second_person: float
    pronoun: float  # third person
    name: float
    adjective: float
    relative: float
    attached: float
    adjunct: float
    manner: float
    time: float
    subordinate: float
    second: float
    question: float
    command: float
    negated: float


DOMAINS = {
    "written": Domain(0.06, 0.03, 0.06, 0.12, 0.35, 0.20, 0.12, 0.30, 0.20, 0.12, 0.14, 0.08, 0.05, 0.0, 0.12),
    "dialogue": Domain(0.32, 0.10, 0.15, 0.15, 0.15, 0.04, 0.04, 0.20, 0.20, 0.25, 0.06, 0.04, 0.28, 0.15, 0.18),
}
_SINGULAR = ("the", "the", "the", "a", "a", "this", "that", "every", "no")
_PLURAL = ("the", "the", "the", "these", "those", "some", "no", *lexicon.NUMERALS)
_OWN = {"I": "my", "you": "your", "he": "his", "she": "her", "it": "its", "we": "our", "they": "their"}
_SHOWS_NUMBER = ("a", "this", "that", "every", "these", "those", "some", *lexicon.NUMERALS)
_RARER = 1.0  # Zipf: the word of rank r, from 0, is drawn in proportion to (r + 3)^-1


class Generator:
    """Draws one sentence after the other; the same seed gives the same sentences."""

    def __init__(self, domain: str, seed: str) -> None:
        self._domain = DOMAINS[domain]
        self._random = random.Random(seed)
        self._topic = ""

    def sentence(self) -> Sentence:
        while True:
            self._topic = self._random.choice(lexicon.TOPICS)
            made = self._sentence()
            used = list(_nouns(made))
            if any(noun.topic and not noun.ambiguous for noun in used) or not any(noun.ambiguous for noun in used):
                return made  # otherwise nothing in the sentence tells the senses of its words

    def _sentence(self) -> Sentence:
        domain = self._domain
        if self._chance(domain.command):
            called = self._name() if self._chance(0.4) else None
            return Sentence(self._clause("command", depth=1), called=called)
        mood = "question" if self._chance(domain.question) else "statement"
        sentence = Sentence(self._clause(mood, depth=2))
        if mood == "statement" and self._chance(domain.subordinate):
            sentence.subordinate = self._clause("statement", depth=1, about=sentence.main.subject)
            sentence.subordinator = self._pick(lexicon.SUBORDINATORS)
            # A pronoun needs whom it stands for before it.
            sentence.first = sentence.subordinate.subject.antecedent is None and self._chance(0.5)  # type: ignore[union-attr]
        elif mood == "statement" and self._chance(domain.second):
            sentence.second = self._clause("statement", depth=1)
            sentence.conjunction = self._pick(lexicon.CONJUNCTIONS)
        return sentence

    def _clause(self, mood: str, *, depth: int, about: Nominal | None = None) -> Clause:
        domain, verb = self._domain, self._verb(depth)
        tense = "present" if mood == "command" else self._random.choice(("present", "present", "past", "future"))
        subject = None if mood == "command" else self._subject(depth, about)
        none = subject is not None and subject.determiner == "no"
        clause = Clause(verb, tense, subject, mood=mood, negated=not none and self._chance(domain.negated))
        if subject and subject.noun and subject.noun.zero_plural and tense == "present" and self._chance(0.7):
            subject.determiner = "the"  # the verb alone tells one sheep from two
        self._fill(clause, depth)
        clause.manner = self._pick(lexicon.MANNER) if self._chance(domain.manner) else ""
        if self._chance(domain.time) and not clause.complement:
            clause.time = self._pick(lexicon.TIMES[tense])
        if mood == "statement" and depth == 2 and not clause.complement and self._chance(domain.adjunct / 3):
            clause.fronted = Adjunct(self._pick(lexicon.PLACE_PREPOSITIONS), self._simple("place"))
        return clause

    def _fill(self, clause: Clause, depth: int) -> None:
        """What the verb asks for, and what may stand beside it."""
        verb, subject = clause.verb, clause.subject
        if verb.frame == "clause":
            clause.complement = self._clause("statement", depth=depth - 1, about=subject)
            return
        if verb.frame == "recipient":
            clause.recipient = self._nominal(("person",), depth=0)
        if verb.frame != "alone" and clause.gap != "object":
            clause.object = self._object(verb, subject, depth)
        if not self._chance(self._domain.adjunct):
            return
        if verb.with_tool and self._chance(0.7):
            clause.adjuncts = [Adjunct("with", self._simple("tool"))]
        elif verb.frame == "alone" or verb.with_place or clause.gap == "object":
            clause.adjuncts = [Adjunct(self._pick(lexicon.PLACE_PREPOSITIONS), self._simple("place"))]
        elif clause.object and clause.object.noun and not clause.object.relative and not clause.object.attached:
            clause.object.attached = self._attached(clause.object.noun, verb)

    def _subject(self, depth: int, about: Nominal | None = None) -> Nominal:
        """about: the subject of the clause above, whom a pronoun may stand for."""
        domain, draw = self._domain, self._random.random()
        if draw < domain.first_person:
            return Nominal(pronoun=self._random.choice(("I", "I", "we")), plural=False)
        if draw < domain.first_person + domain.second_person:
            return Nominal(pronoun="you")
        if about is not None and (about.noun or about.name) and self._chance(0.4):
            return Nominal(pronoun=_stands_for(about, self._random), plural=about.plural, antecedent=about)
        if self._chance(domain.pronoun):
            pronoun = self._random.choice(("he", "she", "they"))
            return Nominal(pronoun=pronoun, plural=pronoun == "they")
        return self._nominal(("person", "person", "animal"), depth=depth)

    def _object(self, verb: Verb, subject: Nominal | None, depth: int) -> Nominal:
        kinds = {"animate": ("person", "animal"), "thing": ("thing", "tool"), "": ("thing", "person", "animal", "tool")}
        if not verb.wants and self._chance(self._domain.pronoun / 2):
            return Nominal(pronoun=self._random.choice(("he", "she")))
        found = self._nominal(
            ("thing", "tool") if verb.frame == "recipient" else kinds[verb.wants], depth=depth, after=verb
        )
        if subject is not None and found.noun and not found.relative and self._chance(0.15):
            owner = subject.pronoun or _stands_for(subject, self._random)
            found.determiner, found.antecedent = _OWN[owner], subject
        if found.noun and found.noun.zero_plural:
            self._show_number(found)  # a possessive does not
        return found

    def _nominal(self, kinds: Sequence[str], *, depth: int, after: Verb | None = None) -> Nominal:
        """after: the verb whose object this is, which takes some phrases to itself."""
        domain = self._domain
        if "person" in kinds and self._chance(domain.name):
            return self._name()
        found = self._simple(self._random.choice(kinds))
        for chance in (domain.adjective, domain.adjective / 4):
            if self._chance(chance):
                degree = self._pick(lexicon.DEGREES) if self._chance(0.15) else ""
                found.adjectives.append((degree, self._pick(lexicon.ADJECTIVES)))
        if depth >= 1 and self._chance(domain.relative):
            found.relative = self._relative(found)
        elif self._chance(domain.attached):
            found.attached = self._attached(found.thing, after)
        return found

    def _attached(self, noun: Noun, after: Verb | None) -> Adjunct:
        """A phrase that belongs to a noun: the verb before it and the noun in it tell that it is not the verb's."""
        if noun.animate and (self._chance(0.6) or (after and after.with_place)):
            tool = self._chance(0.5) and not (after and after.with_tool)
            return Adjunct("with", self._simple("tool" if tool else "thing"))
        if self._chance(0.4) or (after and after.with_place):
            return Adjunct("of", self._simple("person"))
        return Adjunct(self._pick(lexicon.PLACE_PREPOSITIONS), self._simple("place"))

    def _relative(self, filler: Nominal) -> Clause:
        """A clause about a noun, which is its subject or its object."""
        noun = filler.thing
        gap = "subject" if noun.animate and self._chance(0.55) else "object"
        verb = self._verb(0)
        while gap == "object" and not (
            verb.frame == "object" and verb.wants in ("", "animate" if noun.animate else "thing")
        ):
            verb = self._verb(0)
        tense = self._random.choice(("present", "past"))
        clause = Clause(verb, tense, gap=gap, filler=filler)
        if gap == "object":
            clause.subject = self._nominal(("person", "animal"), depth=0)
        self._fill(clause, 0)
        return clause

    def _simple(self, kind: str) -> Nominal:
        """A noun with its determiner alone."""
        noun = self._pick(_of_topic(kind, self._topic))
        plural = self._chance(0.35) and kind != "place"
        found = Nominal(noun, plural=plural, determiner=self._random.choice(_PLURAL if plural else _SINGULAR))
        if noun.zero_plural:
            self._show_number(found)
        return found

    def _show_number(self, nominal: Nominal) -> None:
        """Where nothing else does, the determiner tells one sheep from two."""
        while nominal.determiner not in _SHOWS_NUMBER:
            nominal.determiner = self._random.choice(_PLURAL if nominal.plural else _SINGULAR)

    def _name(self) -> Nominal:
        name, gender = self._pick(lexicon.NAMES)
        return Nominal(name=name, gender=gender)

    def _verb(self, depth: int) -> Verb:
        while True:
            verb = self._pick(_verbs())
            if verb.frame != "clause" or depth >= 2:
                return verb

    def _pick(self, items: Sequence[Item]) -> Item:
        return self._random.choices(items, cum_weights=_weights(len(items)))[0]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability


def _stands_for(nominal: Nominal, draw: random.Random) -> str:
    """The pronoun for somebody or something."""
    if nominal.plural:
        return "they"
    if nominal.name:
        return "he" if nominal.gender == "m" else "she"
    if nominal.noun and nominal.noun.kind == "person":
        return draw.choice(("he", "she"))
    return "it"


@cache
def _weights(count: int) -> list[float]:
    total, sums = 0.0, []
    for rank in range(count):
        total += (rank + 3) ** -_RARER
        sums.append(total)
    return sums


@cache
def _of_topic(kind: str, topic: str) -> tuple[Noun, ...]:
    """Nouns of a kind that may occur where this is the topic, in an order that mixes topics and senses."""
    found = [noun for noun in lexicon.nouns() if noun.kind == kind and noun.topic in ("", topic)]
    return tuple(random.Random(f"{kind} {topic}").sample(found, len(found)))


@cache
def _verbs() -> tuple[Verb, ...]:
    found = list(lexicon.verbs())
    return tuple(random.Random("verbs").sample(found, len(found)))


def _nouns(sentence: Sentence) -> list[Noun]:
    """All nouns of a sentence."""
    found: list[Noun] = []

    def of_nominal(nominal: Nominal | None) -> None:
        if nominal is None:
            return
        if nominal.noun:
            found.append(nominal.noun)
        if nominal.attached:
            of_nominal(nominal.attached.nominal)
        of_clause(nominal.relative)

    def of_clause(clause: Clause | None) -> None:
        if clause is None:
            return
        for nominal in (clause.subject, clause.object, clause.recipient):
            of_nominal(nominal)
        for adjunct in (*clause.adjuncts, *([clause.fronted] if clause.fronted else [])):
            of_nominal(adjunct.nominal)
        of_clause(clause.complement)

    for clause in (sentence.main, sentence.subordinate, sentence.second):
        of_clause(clause)
    return found
