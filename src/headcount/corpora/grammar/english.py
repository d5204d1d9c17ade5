"""A sentence in English: its words, and on which word each depends (Universal Dependencies)."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.corpora.grammar.syntax import Adjunct, Clause, Nominal, Sentence
from headcount.corpora.tree import Tree

_PLURAL_OF = {"this": "these", "that": "those"}
_OBJECT = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
_POSSESSIVE = ("my", "your", "his", "her", "its", "our", "their")
_NUMERAL = ("two", "three", "five", "seven")


@dataclass(eq=False)
class Word:
    """One word and the word it depends on; the root has none."""

    form: str
    tag: str
    relation: str = ""
    head: Word | None = None

    def under(self, head: Word | None, relation: str) -> Word:
        self.head, self.relation = head, relation
        return self


def english(sentence: Sentence) -> Tree:
    words = _sentence(sentence)
    root = next(word for word in words if word.head is None)
    sign = {"statement": ".", "question": "?", "command": "!"}[sentence.main.mood]
    words.append(Word(sign, "PUNCT").under(root, "punct"))
    words[0].form = words[0].form[0].upper() + words[0].form[1:]
    return _tree(words)


def _sentence(sentence: Sentence) -> list[Word]:
    main = _clause(sentence.main)
    root = _root(main).under(None, "root")
    if sentence.called:
        name = _nominal(sentence.called, "vocative", root)
        return [*name, _comma(root), *main]
    if sentence.subordinate:
        below = _clause(sentence.subordinate)
        verb = _root(below).under(root, "advcl")
        mark = Word(sentence.subordinator, "SCONJ").under(verb, "mark")
        return [mark, *below, _comma(verb), *main] if sentence.first else [*main, mark, *below]
    if sentence.second:
        other = _clause(sentence.second)
        verb = _root(other).under(root, "conj")
        return [*main, _comma(verb), Word(sentence.conjunction, "CCONJ").under(verb, "cc"), *other]
    return main


def _root(words: list[Word]) -> Word:
    """The verb of a clause that does not depend on anything yet."""
    return next(word for word in words if word.head is None and word.tag == "VERB")


def _comma(head: Word) -> Word:
    return Word(",", "PUNCT").under(head, "punct")


def _clause(clause: Clause) -> list[Word]:
    verb, helpers = _verb_group(clause)
    manner = [Word(clause.manner, "ADV").under(verb, "advmod")] if clause.manner else []
    subject = _nominal(clause.subject, "nsubj", verb) if clause.subject else []
    rest: list[Word] = []
    if clause.recipient:
        rest += _nominal(clause.recipient, "iobj", verb)
    if clause.object:
        rest += _nominal(clause.object, "obj", verb)
    for adjunct in clause.adjuncts:
        rest += _adjunct(adjunct, "obl", verb)
    if clause.complement:
        below = _clause(clause.complement)
        rest += [Word("that", "SCONJ").under(_root(below), "mark"), *below]
        _root(below).under(verb, "ccomp")
    if clause.time:
        rest.append(Word(clause.time, "ADV").under(verb, "advmod"))
    front = [*_adjunct(clause.fronted, "obl", verb), _comma(verb)] if clause.fronted else []
    if clause.mood == "question":
        return [helpers[0], *subject, *helpers[1:], *manner, verb, *rest]
    return [*front, *subject, *helpers, *manner, verb, *rest]


def _verb_group(clause: Clause) -> tuple[Word, list[Word]]:
    """The verb in its form, and its auxiliaries in order."""
    entry, third = clause.verb, _is_third(clause)
    support = clause.negated or clause.mood == "question"
    if clause.tense == "future":
        helper, form = "will", entry.word
    elif support:
        helper, form = ("did" if clause.tense == "past" else "does" if third else "do"), entry.word
    else:
        helper, form = "", entry.past if clause.tense == "past" else entry.third if third else entry.word
    verb = Word(form, "VERB")
    helpers = [Word(helper, "AUX").under(verb, "aux")] if helper else []
    if clause.negated:
        helpers.append(Word("not", "PART").under(verb, "advmod"))
    return verb, helpers


def _is_third(clause: Clause) -> bool:
    """Whether the verb takes its -s: the subject is one, and neither I nor you."""
    subject = clause.filler if clause.gap == "subject" else clause.subject
    return subject is not None and subject.person == 3 and not subject.plural


def _adjunct(adjunct: Adjunct, relation: str, head: Word) -> list[Word]:
    words = _nominal(adjunct.nominal, relation, head)
    noun = next(word for word in words if word.head is head)
    return [Word(adjunct.preposition, "ADP").under(noun, "case"), *words]


def _nominal(nominal: Nominal, relation: str, head: Word) -> list[Word]:
    if nominal.name:
        return [Word(nominal.name, "PROPN").under(head, relation)]
    if nominal.pronoun:
        form = nominal.pronoun if relation == "nsubj" else _OBJECT.get(nominal.pronoun, nominal.pronoun)
        return [Word(form, "PRON").under(head, relation)]
    noun = Word(nominal.thing.plural if nominal.plural else nominal.thing.word, "NOUN").under(head, relation)
    before: list[Word] = []
    for degree, adjective in nominal.adjectives:
        word = Word(adjective, "ADJ").under(noun, "amod")
        before += [Word(degree, "ADV").under(word, "advmod")] if degree else []
        before.append(word)
    words = [*_determiner(nominal, noun, (before or [noun])[0].form), *before, noun]
    if nominal.attached:
        words += _adjunct(nominal.attached, "nmod", noun)
    if nominal.relative:
        words += _relative(nominal.relative, noun)
    return words


def _determiner(nominal: Nominal, noun: Word, following: str) -> list[Word]:
    form = nominal.determiner
    if form in _POSSESSIVE:
        return [Word(form, "PRON").under(noun, "nmod")]
    if form in _NUMERAL:
        return [Word(form, "NUM").under(noun, "nummod")]
    if form == "a" and following[0] in "aeiou":
        form = "an"
    return [Word(form, "DET").under(noun, "det")]


def _relative(clause: Clause, noun: Word) -> list[Word]:
    words = _clause(clause)
    verb = _root(words).under(noun, "acl")
    relation = "nsubj" if clause.gap == "subject" else "obj"
    return [Word("that", "PRON").under(verb, relation), *words]


def _tree(words: list[Word]) -> Tree:
    place = {id(word): number for number, word in enumerate(words)}
    text, spans = "", []
    for word in words:
        text += "" if not text or word.tag == "PUNCT" else " "
        spans.append((len(text), len(text) + len(word.form)))
        text += word.form
    return Tree(
        text=text,
        words=tuple(word.form for word in words),
        spans=tuple(spans),
        heads=tuple(-1 if word.head is None else place[id(word.head)] for word in words),
        relations=tuple(word.relation for word in words),
        tags=tuple(word.tag for word in words),
    )
