"""The meaning of a sentence before it has words: phrases and one clause about one topic."""

from __future__ import annotations

from dataclasses import dataclass, field

from headcount.corpora.grammar.lexicon import PRONOUNS, Noun, Verb


@dataclass
class Nominal:
    """A nominal: a noun with its modifiers, a name, or a pronoun."""

    noun: Noun | None = None
    name: str = ""
    pronoun: str = ""
    plural: bool = False
    determiner: str = ""
    adjectives: list[str] = field(default_factory=list)
    joined: bool = False  # two adjectives with "and" between them
    possessor: Nominal | None = None  # "the friend of the king"

    @property
    def takes_third_person(self) -> bool:
        """Whether its verb ends in -s."""
        return PRONOUNS.get(self.pronoun, 3) == 3 and not self.plural


@dataclass
class Clause:
    """A verb with everything that depends on it."""

    verb: Verb
    tense: str  # present, past or future
    subject: Nominal | None = None  # none in a command
    object: Nominal | None = None
    adverbs: dict[str, str] = field(default_factory=dict)  # front, middle or end -> adverb
    preposition: str = ""
    location: Nominal | None = None  # after the preposition
    location_first: bool = False
    negated: bool = False
    mood: str = "statement"  # statement, question or command


@dataclass
class Sentence:
    """A clause, and the topic that decides the senses of its words."""

    clause: Clause
    topic: str
