"""light: three classes of words; the verb comes first and agrees with its object, which follows it.

Order: verb, adverbs, object, subject, place. Within a phrase the noun is first, and the words after it agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from headcount.corpora.grammar.english import Word
from headcount.corpora.grammar.languages.language import HEAD, Language, dependent


class Light(Language):
    """The verb agrees with its object, or with its subject if it has none; adverbs agree with the subject."""

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
    sounds = ("b ch d f g l m p r sh t v w", "a e i o ai au", "- l n r s sh")

    def partner(self, word: Word, words: Sequence[Word]) -> Word | None:
        if word.tag == "VERB":
            return dependent(word, "obj", words) or dependent(word, "nsubj", words)
        if word.relation == "advmod" and word.head is not None:
            return dependent(word.head, "nsubj", words)
        return super().partner(word, words)


LANGUAGE = Light
