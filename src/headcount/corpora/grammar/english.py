"""A sentence in English: its words, and which word each depends on (Universal Dependencies).

Sentences are written in lower case, except names and "I", and have no full stop: a constant last token would be a query
that no positional head can serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headcount.corpora.grammar.lexicon import in_register
from headcount.corpora.grammar.syntax import Clause, Nominal, Sentence
from headcount.corpora.tree import Tree

_SAME_IN_EVERY_REGISTER = ("NOUN", "VERB", "PROPN")  # words of other classes differ by topic
_OBJECT_FORM = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}


@dataclass(eq=False)
class Word:
    """One English word with its head and the key of its translation; the root has no head."""

    form: str
    tag: str
    relation: str = ""
    head: Word | None = None
    sense: str = ""  # key of its translation
    plural: bool = False
    tense: str = ""

    def under(self, head: Word | None, relation: str) -> Word:
        self.head, self.relation = head, relation
        return self


def english(sentence: Sentence) -> list[Word]:
    """The words of a sentence in order."""
    words = _clause(sentence.clause, sentence.topic)
    for word in words:
        if word.tag not in _SAME_IN_EVERY_REGISTER:
            word.sense = in_register(word.sense, sentence.topic)
    return words


def tree(words: Sequence[Word]) -> Tree:
    """The same words as a dependency tree, without their translation keys."""
    index = {id(word): number for number, word in enumerate(words)}
    text, spans = "", []
    for word in words:
        text += " " if text else ""
        spans.append((len(text), len(text) + len(word.form)))
        text += word.form
    return Tree(
        text=text,
        words=tuple(word.form for word in words),
        spans=tuple(spans),
        heads=tuple(-1 if word.head is None else index[id(word.head)] for word in words),
        relations=tuple(word.relation for word in words),
        tags=tuple(word.tag for word in words),
    )


def _clause(clause: Clause, topic: str) -> list[Word]:
    verb, auxiliaries = _verb_group(clause, topic)
    adverbs = {
        position: [Word(adverb, "ADV", sense=adverb).under(verb, "advmod")]
        for position, adverb in clause.adverbs.items()
    }
    subject = _nominal(clause.subject, "nsubj", verb, topic) if clause.subject else []
    thing = _nominal(clause.object, "obj", verb, topic) if clause.object else []
    adverbial = _place(clause, verb, topic) if clause.location else []
    before, after = (adverbial, []) if clause.location_first else ([], adverbial)
    opening = [*adverbs.get("front", []), *before]
    closing = [*adverbs.get("middle", []), verb, *thing, *after, *adverbs.get("end", [])]
    if clause.mood == "question":
        return [*opening, auxiliaries[0], *subject, *auxiliaries[1:], *closing]
    return [*opening, *subject, *auxiliaries, *closing]


def _verb_group(clause: Clause, topic: str) -> tuple[Word, list[Word]]:
    """The verb in its form, and its auxiliaries in order."""
    entry = clause.verb
    third = clause.subject is not None and clause.subject.takes_third_person
    auxiliary, form = "", entry.word
    if clause.tense == "future":
        auxiliary = "will"
    elif clause.negated or clause.mood == "question":
        auxiliary = "did" if clause.tense == "past" else "does" if third else "do"
    elif clause.tense == "past":
        form = entry.past
    elif third:
        form = entry.third
    verb = Word(form, "VERB", "root", sense=entry.sense(topic), tense=clause.tense)
    auxiliaries = [Word(auxiliary, "AUX", sense=clause.mood).under(verb, "aux")] if auxiliary else []
    if clause.negated:
        auxiliaries.append(Word("not", "PART", sense="not").under(verb, "advmod"))
    return verb, auxiliaries


def _place(clause: Clause, verb: Word, topic: str) -> list[Word]:
    if clause.location is None:
        return []
    words = _nominal(clause.location, "obl", verb, topic)
    noun = next(word for word in words if word.head is verb)
    return [Word(clause.preposition, "ADP", sense=clause.preposition).under(noun, "case"), *words]


def _nominal(nominal: Nominal, relation: str, head: Word, topic: str) -> list[Word]:
    if nominal.name:
        return [Word(nominal.name, "PROPN", sense=nominal.name).under(head, relation)]
    if nominal.pronoun:
        form = nominal.pronoun if relation == "nsubj" else _OBJECT_FORM.get(nominal.pronoun, nominal.pronoun)
        return [Word(form, "PRON", sense=nominal.pronoun, plural=nominal.plural).under(head, relation)]
    if nominal.noun is None:
        raise ValueError("a nominal needs a noun, a name or a pronoun")
    form = nominal.noun.plural if nominal.plural else nominal.noun.word
    noun = Word(form, "NOUN", sense=nominal.noun.sense(topic), plural=nominal.plural).under(head, relation)
    adjectives = _adjectives(nominal, noun)
    words = [*adjectives, noun]
    if nominal.determiner:
        words = [_determiner(nominal.determiner, noun, words[0].form), *words]
    if nominal.possessor:
        possessor = _nominal(nominal.possessor, "nmod", noun, topic)
        owner = next(word for word in possessor if word.head is noun)
        words += [Word("of", "ADP", sense="of").under(owner, "case"), *possessor]
    return words


def _adjectives(nominal: Nominal, noun: Word) -> list[Word]:
    adjectives = [Word(adjective, "ADJ", sense=adjective).under(noun, "amod") for adjective in nominal.adjectives]
    if not nominal.joined:
        return adjectives
    outer, inner = adjectives
    inner.under(outer, "conj")
    return [outer, Word("and", "CCONJ", sense="and").under(inner, "cc"), inner]


def _determiner(form: str, noun: Word, following: str) -> Word:
    if form in ("my", "our"):
        return Word(form, "PRON", sense=form).under(noun, "nmod")
    if form == "two":
        return Word(form, "NUM", sense=form).under(noun, "nummod")
    spelled = "an" if form == "a" and following[0] in "aeiou" else form
    return Word(spelled, "DET", sense=form).under(noun, "det")
