"""bare: words never change. Small words tell number, tense and class, and what belongs to a noun stands before it."""

from __future__ import annotations

from headcount.corpora.grammar.languages.language import DETERMINERS, OWNERS, SAME, Language
from headcount.corpora.grammar.stems import Stems, drawn, respelled
from headcount.corpora.grammar.syntax import Adjunct, Clause, Nominal

_PRONOUNS = {"I": "wo", "you": "ni", "he": "ta", "she": "ta", "it": "ta", "we": "wo men", "they": "ta men"}
_BELONGS = {"his": "ta", "her": "ta", "its": "ta", "their": "ta men"}
_TENSE = {"present": [], "past": ["le"], "future": ["hui"]}
_CLASSES = ("ge", "zi", "ben", "tou", "kuai")
_CASE = {"accusative": [], "dative": ["gei"], "genitive": ["dui"], "instrumental": ["yon"]}
_PARTICLES = (
    "wo", "ni", "ta", "men", "le", "hui", "ge", "zi", "ben", "tou", "kuai", "de", "bu", "ma", "ba", "zai", "yon",
    "gei", "dui", "lo",
)  # fmt: skip


class Bare(Language):
    """Time and place first, then subject, verb, object; relative clauses before their noun; classifiers."""

    name = "bare"
    about = "words never change"

    def __init__(self) -> None:
        onsets = "b d f g h j k l m n p q s sh t w x y z zh"
        super().__init__(Stems("bare", onsets, "a e i o u ao ei", "- - n ng", taken=_PARTICLES))

    def clause(self, clause: Clause, place: str) -> list[str]:
        subject = self.nominal(clause.subject) if clause.subject and clause.gap != "subject" else []
        recipient = ["gei", *self.nominal(clause.recipient)] if clause.recipient else []
        thing = [*_CASE[clause.verb.case], *self.nominal(clause.object)] if clause.object else []
        places = [*clause.adjuncts, *([clause.fronted] if clause.fronted else [])]
        where = [word for adjunct in places for word in self._adjunct(adjunct)]
        time = [self.stems[clause.time]] if clause.time else []
        manner = [self.stems[clause.manner]] if clause.manner else []
        said = ["lo", *self.clause(clause.complement, "said")] if clause.complement else []
        negation = ["bu"] if clause.negated else []
        verb = [*negation, *_TENSE[clause.tense], self.stems[clause.verb.name]]
        ending = {"question": ["ma"], "command": ["ba"]}.get(clause.mood, [])
        before, after = (recipient, thing) if place == "main" else ([*recipient, *thing], [])
        return [*time, *subject, *where, *manner, *before, *verb, *after, *said, *ending]

    def nominal(self, nominal: Nominal) -> list[str]:
        if nominal.name:
            return [respelled(nominal.name)]
        if nominal.pronoun:
            return _PRONOUNS[nominal.pronoun].split()
        words = [*self._relative(nominal), *self._determiner(nominal)]
        for degree, adjective in nominal.adjectives:
            words += [self.stems[degree]] if degree else []
            words.append(self.stems[adjective])
        many = ["men"] if nominal.plural and nominal.thing.animate and nominal.determiner == "the" else []
        return [*words, self.stems[nominal.thing.name], *many]

    def _relative(self, nominal: Nominal) -> list[str]:
        """All that belongs to a noun and is no adjective, each closed by `de`."""
        words: list[str] = []
        if nominal.relative:
            words += [*self.clause(nominal.relative, "relative"), "de"]
        if nominal.attached:
            held = self.nominal(nominal.attached.nominal)
            mark = {"with": ["yon"], "of": []}.get(nominal.attached.preposition)
            words += [*held, *([self.stems[nominal.attached.preposition]] if mark is None else mark), "de"]
        return words

    def _determiner(self, nominal: Nominal) -> list[str]:
        said = SAME.get(nominal.determiner, nominal.determiner)
        if said == "the":
            return []
        counted = drawn("bare", nominal.thing.name, _CLASSES)
        if said == "a":
            return [counted]
        if said in DETERMINERS:
            return [self.stems[said], counted]
        if said in OWNERS:
            return [self.stems[said], "de"]
        return [*_BELONGS[said].split(), "de"]

    def _adjunct(self, adjunct: Adjunct) -> list[str]:
        held = self.nominal(adjunct.nominal)
        if adjunct.preposition == "with":
            return ["yon", *held]
        return ["zai", *held, self.stems[adjunct.preposition]]


LANGUAGE = Bare
