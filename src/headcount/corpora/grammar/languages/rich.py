"""rich: five classes of words; every word agrees or is governed, and the word that decides its form follows it.

Order: place, object, adverbs, verb, subject. Within a phrase the noun is last.
The object is governed by its verb, adverbs agree with the verb, the verb with its subject, adjectives with their noun.
"""

from __future__ import annotations

from headcount.corpora.grammar.languages.language import HEAD, Language


class Rich(Language):
    """Agreement and government everywhere."""

    name = "rich"
    about = "five classes; objects, adverbs, verbs and adjectives show their partner"
    onsets = ("l", "v", "h", "g")
    vowels = ("a", "e", "i", "o", "u")
    vowel_alone = "y"
    codas = ("n", "m", "s", "")
    order = {
        "VERB": ("obl", "obj", "advmod", HEAD, "nsubj"),
        "NOUN": ("nmod", "det", "nummod", "amod", HEAD, "case"),
        "ADJ": ("cc", HEAD, "conj"),
    }
    plural = "ri"
    tenses = {"present": "", "past": "ev", "future": "alt"}
    sounds = ("b d f k p r s t z br dr kr pl st tr zh", "a e i o u", "b d g k l r s t lt nd rk st")


LANGUAGE = Rich
