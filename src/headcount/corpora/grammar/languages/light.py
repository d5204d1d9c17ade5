"""light: nouns show number, verbs show tense; everything else is order and small words."""

from __future__ import annotations

from headcount.corpora.grammar.languages.language import DETERMINERS, OWNERS, SAME, Language
from headcount.corpora.grammar.stems import Stems, drawn, respelled
from headcount.corpora.grammar.syntax import Adjunct, Clause, Nominal

_PRONOUNS = {"I": "mi", "you": "tu", "he": "lu", "she": "la", "it": "lo", "we": "nos", "they": "lor"}
_BELONGS = {"his": "sua", "her": "sua", "its": "sua", "their": "lorsa"}
_CASE = {"accusative": [], "dative": ["ad"], "genitive": ["di"], "instrumental": ["per"]}
_PARTICLES = (
    "le",
    "un",
    "no",
    "ke",
    "cha",
    "kon",
    "shel",
    "di",
    "ad",
    "per",
    "est",
    *_PRONOUNS.values(),
    "sua",
    "lorsa",
)


class Light(Language):
    """Subject, verb, object; adjectives follow their noun; articles know two classes of nouns."""

    name = "light"
    about = "number on nouns, tense on verbs"

    def __init__(self) -> None:
        onsets = "b ch d f g k l m n p r s sh t v w"
        super().__init__(Stems("light", onsets, "a e i o ai au", "- l n r s sh", taken=_PARTICLES))

    def clause(self, clause: Clause, place: str) -> list[str]:
        subject = self.nominal(clause.subject) if clause.subject and clause.gap != "subject" else []
        recipient = ["ad", *self.nominal(clause.recipient)] if clause.recipient else []
        thing = [*_CASE[clause.verb.case], *self.nominal(clause.object)] if clause.object else []
        rest = [word for adjunct in clause.adjuncts for word in self._adjunct(adjunct)]
        manner = [self.stems[clause.manner]] if clause.manner else []
        time = [self.stems[clause.time]] if clause.time else []
        front = self._adjunct(clause.fronted) if clause.fronted else []
        said = ["ke", *self.clause(clause.complement, "said")] if clause.complement else []
        verb = self._verb(clause)
        if clause.mood == "question":
            return [*verb, "est", *subject, *thing, *recipient, *manner, *rest, *time, *said]
        return [*front, *subject, *verb, *thing, *recipient, *manner, *rest, *time, *said]

    def _verb(self, clause: Clause) -> list[str]:
        ending = {"present": "", "past": "it", "future": "ara"}[clause.tense]
        form = self.stems[clause.verb.name] + ("u" if clause.mood == "command" else ending)
        return ["no", form] if clause.negated else [form]

    def nominal(self, nominal: Nominal) -> list[str]:
        if nominal.name:
            return [respelled(nominal.name)]
        if nominal.pronoun:
            return [_PRONOUNS[nominal.pronoun]]
        words = [*self._determiner(nominal), self.stems[nominal.thing.name] + ("im" if nominal.plural else "")]
        for degree, adjective in nominal.adjectives:
            words += [self.stems[degree]] if degree else []
            words.append(self.stems[adjective])
        if nominal.attached:
            words += self._attached(nominal.attached)
        if nominal.relative:
            words += ["cha" if nominal.relative.gap == "object" else "ke", *self.clause(nominal.relative, "relative")]
        return words

    def _determiner(self, nominal: Nominal) -> list[str]:
        said = SAME.get(nominal.determiner, nominal.determiner)
        if said in ("the", "a"):
            vowel = drawn("light", nominal.thing.name, ("o", "a"))  # the noun's class
            return [("l" if said == "the" else "un") + vowel]
        if said in DETERMINERS or said in OWNERS:
            return [self.stems[said]]
        return [_BELONGS[said]]

    def _adjunct(self, adjunct: Adjunct) -> list[str]:
        before = "per" if adjunct.preposition == "with" else self.stems[adjunct.preposition]
        return [before, *self.nominal(adjunct.nominal)]

    def _attached(self, adjunct: Adjunct) -> list[str]:
        before = {"with": ["kon"], "of": ["di"]}.get(adjunct.preposition, [])
        before = before or ["shel", self.stems[adjunct.preposition]]
        return [*before, *self.nominal(adjunct.nominal)]


LANGUAGE = Light
