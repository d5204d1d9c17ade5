"""light: three classes of words; the verb comes first and agrees with its object, which is spoken after it.

verb, adverbs, object, subject, place; within a phrase the noun is first, and what follows it agrees.
"""

from __future__ import annotations

from collections.abc import Sequence

from headcount.corpora.grammar.english import Word
from headcount.corpora.grammar.languages.language import HEAD, Language, dependent


class Light(Language):
    """The verb shows its object, or its subject where it has none; adverbs show the subject."""

    name = "light"
    about = "three classes; verbs show their object, adverbs the subject"
    onsets = ("s", "n", "k")
    vowels = ("a", "e", "o")
    vowel_alone = "u"
    codas = ("l", "i", "")
    order = {
        "VERB": ("advmod", HEAD, "obj", "nsubj", "obl"),
        "NOUN": ("case", HEAD, "nummod", "det", "amod", "nmod"),
        "ADJ": (HEAD, "conj"),
    }
    plural = "im"
    tenses = {"present": "", "past": "it", "future": "ara"}

    def __init__(self) -> None:
        super().__init__("b ch d f g l m p r sh t v w", "a e i o ai au", "- l n r s sh")

    def partner(self, word: Word, words: Sequence[Word]) -> Word | None:
        if word.tag == "VERB":
            return dependent(word, "obj", words) or dependent(word, "nsubj", words)
        if word.relation == "advmod" and word.head is not None:
            return dependent(word.head, "nsubj", words)
        return super().partner(word, words)


LANGUAGE = Light
