"""What a sentence says, before it has words: phrases and clauses. Every language speaks from these."""

from __future__ import annotations

from dataclasses import dataclass, field

from headcount.corpora.grammar.lexicon import Noun, Verb


@dataclass
class Nominal:
    """Somebody or something: a noun with what belongs to it, a name, or a pronoun."""

    noun: Noun | None = None
    name: str = ""
    pronoun: str = ""  # I you he she it we they
    gender: str = ""  # of a name: m or f
    plural: bool = False
    determiner: str = ""  # the a this that some every no my your his her its our their, or a numeral
    adjectives: list[tuple[str, str]] = field(default_factory=list)  # (degree or "", adjective)
    attached: Adjunct | None = None
    relative: Clause | None = None
    antecedent: Nominal | None = None  # whom a pronoun or possessive stands for

    @property
    def thing(self) -> Noun:
        """The noun; a name or a pronoun has none."""
        if self.noun is None:
            raise ValueError(f"{self.name or self.pronoun or 'an empty nominal'} is no noun")
        return self.noun

    @property
    def person(self) -> int:
        return {"I": 1, "we": 1, "you": 2}.get(self.pronoun, 3)


@dataclass
class Adjunct:
    """A preposition with its noun."""

    preposition: str
    nominal: Nominal


@dataclass
class Clause:
    """A verb with all that depends on it."""

    verb: Verb
    tense: str  # present, past or future
    subject: Nominal | None = None  # none in a command
    object: Nominal | None = None
    recipient: Nominal | None = None
    complement: Clause | None = None
    negated: bool = False
    manner: str = ""
    time: str = ""
    adjuncts: list[Adjunct] = field(default_factory=list)  # of the verb, after the object
    fronted: Adjunct | None = None  # of the verb, first in the clause
    mood: str = "statement"  # statement, question or command
    gap: str = ""  # subject or object: what a relative clause leaves open, and who fills it
    filler: Nominal | None = None


@dataclass
class Sentence:
    """A main clause, perhaps with another one before or after it."""

    main: Clause
    subordinate: Clause | None = None
    subordinator: str = ""
    first: bool = False  # the subordinate clause comes first
    second: Clause | None = None  # coordinated
    conjunction: str = ""
    called: Nominal | None = None  # whom a command speaks to
