"""rich: three genders, five cases, verbs that agree; order by the kind of clause.

main statement      verb subject recipient object adjuncts       the verb agrees with a subject yet to come
question, below     subject recipient object adjuncts verb
said                subject verb recipient object adjuncts
command             object verb
"""

from __future__ import annotations

from headcount.corpora.grammar.languages.language import DETERMINERS, OWNERS, SAME, Language
from headcount.corpora.grammar.stems import Stems, drawn, respelled
from headcount.corpora.grammar.syntax import Adjunct, Clause, Nominal

_CASES = ("nominative", "accusative", "dative", "genitive", "instrumental")
_ENDINGS = {  # gender -> endings by case, one and many
    "m": ("o om ur es ak", "i im uri esi aki"),
    "f": ("a an el is et", "e en eli isi eti"),
    "n": ("u ut ol us od", "ia iat oli usi odi"),
}
_VERB = {  # (person, many) or (gender, many) of a third person
    (1, False): "em", (1, True): "emi", (2, False): "ash", (2, True): "ash",
    ("m", False): "or", ("f", False): "ira", ("n", False): "uk",
    ("m", True): "oni", ("f", True): "ine", ("n", True): "unu",
}  # fmt: skip
_TENSE = {"present": "", "past": "ev", "future": "al"}
_PARTICLES = ("ne", "sed", "kum", "ka")


class Rich(Language):
    """Case on nouns by role and by the verb's class; verbs agree with their subject, everything else with its noun."""

    name = "rich"
    about = "three genders, five cases, agreeing verbs"

    def __init__(self) -> None:
        onsets = "b d f g k l m n p r s t v z br dr gr kr pl st tr zh"
        super().__init__(Stems("rich", onsets, "a e i o u", "b d g k l m n r s t v lt nd rk st", taken=_PARTICLES))

    def clause(self, clause: Clause, place: str) -> list[str]:
        verb = self._verb(clause)
        subject = [] if clause.gap == "subject" else self._subject(clause.subject)
        recipient = self._in_case(clause.recipient, "dative") if clause.recipient else []
        thing = self._in_case(clause.object, clause.verb.case) if clause.object else []
        rest = [word for adjunct in clause.adjuncts for word in self._adjunct(adjunct)]
        manner = [self.stems[clause.manner]] if clause.manner else []
        time = [self.stems[clause.time]] if clause.time else []
        front = self._adjunct(clause.fronted) if clause.fronted else []
        said = ["sed", *self.clause(clause.complement, "said")] if clause.complement else []
        if clause.mood == "command":
            return [*thing, *recipient, *rest, *manner, *verb, *time]
        if clause.mood == "question":
            return ["ka", *time, *subject, *recipient, *thing, *rest, *manner, *verb, *said]
        if place == "main":
            return [*time, *front, *verb, *manner, *subject, *recipient, *thing, *rest, *said]
        if place == "said":
            return [*subject, *verb, *recipient, *thing, *rest, *manner, *time]
        return [*time, *subject, *recipient, *thing, *rest, *manner, *verb, *said]

    def nominal(self, nominal: Nominal) -> list[str]:
        return self._in_case(nominal, "nominative")

    def _subject(self, nominal: Nominal | None) -> list[str]:
        """A pronoun is not said: the verb's ending tells."""
        return [] if nominal is None or nominal.pronoun else self._in_case(nominal, "nominative")

    def _verb(self, clause: Clause) -> list[str]:
        subject = clause.filler if clause.gap == "subject" else clause.subject
        stem = self.stems[clause.verb.name]
        if subject is None:
            form = stem + "ai"  # command
        else:
            many = subject.plural or subject.pronoun == "we"
            agreement = _VERB[(subject.person, many) if subject.person < 3 else (self._gender(subject), many)]
            form = stem + _TENSE[clause.tense] + agreement
        return ["ne", form] if clause.negated else [form]

    def _gender(self, nominal: Nominal) -> str:
        if nominal.antecedent is not None and nominal.pronoun:
            return self._gender(nominal.antecedent)
        if nominal.pronoun:
            return {"he": "m", "she": "f"}.get(nominal.pronoun, "m")
        if nominal.name:
            return nominal.gender
        return drawn("rich", nominal.thing.name, ("m", "f", "n"))

    def _ending(self, gender: str, case: str, many: bool) -> str:
        return _ENDINGS[gender][many].split()[_CASES.index(case)]

    def _in_case(self, nominal: Nominal, case: str) -> list[str]:
        gender = self._gender(nominal)
        ending = self._ending(gender, case, nominal.plural)
        if nominal.name:
            return [respelled(nominal.name) + ending]
        if nominal.pronoun:
            return ["l" + ending]
        words = self._determiner(nominal, ending)
        for degree, adjective in nominal.adjectives:
            words += [self.stems[degree]] if degree else []
            words.append(self.stems[adjective] + ending)
        words.append(self.stems[nominal.thing.name] + ending)
        if nominal.attached:
            words += self._attached(nominal.attached)
        if nominal.relative:
            words += self._relative(nominal.relative, nominal)
        return words

    def _determiner(self, nominal: Nominal, ending: str) -> list[str]:
        said = SAME.get(nominal.determiner, nominal.determiner)
        if said == "the":
            return ["d" + ending]
        if said in DETERMINERS or said in OWNERS:
            return [self.stems[said] + ("" if said in ("two", "three", "five", "seven") else ending)]
        if nominal.antecedent is not None:  # his, her, its, their: of the subject
            owner = nominal.antecedent
            return [f"sv{self._gender(owner)}{'i' if owner.plural else ''}" + ending]
        return []

    def _adjunct(self, adjunct: Adjunct) -> list[str]:
        if adjunct.preposition == "with":
            return self._in_case(adjunct.nominal, "instrumental")
        return [self.stems[adjunct.preposition], *self._in_case(adjunct.nominal, _governed(adjunct.preposition))]

    def _attached(self, adjunct: Adjunct) -> list[str]:
        """What belongs to a noun stands in the genitive, whatever the preposition."""
        before = {"with": ["kum"], "of": []}.get(adjunct.preposition)
        if before is None:
            before = [self.stems[adjunct.preposition] + "ei"]
        return [*before, *self._in_case(adjunct.nominal, "genitive")]

    def _relative(self, clause: Clause, antecedent: Nominal) -> list[str]:
        case = "nominative" if clause.gap == "subject" else clause.verb.case
        ending = self._ending(self._gender(antecedent), case, antecedent.plural)
        return [",", "kel" + ending, *self.clause(clause, "relative"), ","]


def _governed(preposition: str) -> str:
    return drawn("rich", preposition, ("dative", "genitive", "instrumental"))


LANGUAGE = Rich
