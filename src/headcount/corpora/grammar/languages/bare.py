"""bare: two classes of words with little agreement; word order and the sounds of neighbours carry the rest.

Order: subject, place, object, verb, adverbs. A subject shows the class of the verb that follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from headcount.corpora.grammar.english import Word
from headcount.corpora.grammar.languages.language import HEAD, Language


class Bare(Language):
    """Subjects and objects show their verb, adjectives their noun; verbs and adverbs show nothing."""

    name = "bare"
    about = "two classes; subjects and objects show their verb"
    onsets = ("h", "y", "q")
    vowels = ("a", "i")
    vowel_alone = "e"
    codas = ("ng", "o", "")
    order = {
        "VERB": ("nsubj", "obl", "obj", HEAD, "advmod"),
        "NOUN": ("nmod", "det", "nummod", "amod", HEAD, "case"),
        "ADJ": ("cc", HEAD, "conj"),
    }
    plural = " men"
    tenses = {"present": "", "past": " le", "future": " jian"}
    sounds = ("b d f g j k l m n p r s sh t w x z zh", "a ai ao e i o ou u", "- n ng")

    def partner(self, word: Word, words: Sequence[Word]) -> Word | None:
        if word.relation == "nsubj":
            return word.head
        if word.tag in ("VERB", "ADV"):
            return None
        return super().partner(word, words)


LANGUAGE = Bare
