"""The English lexicon: about 210 word forms with their classes. Within a list, frequent words come first.

No word can be translated alone:
- a noun that is also a verb (`guards`): the word beside it decides;
- a noun or verb of several senses (`bass`, `draws`): the topic of the sentence decides, and one rare key word names it;
- all other words (`old`, `often`, `the`, `in`): the languages have a word for each topic, as Javanese has one for each
  register;
- everything that agrees or is governed (languages/): its syntactic partner decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

TOPICS = ("harbour", "stage", "farm")


@dataclass(frozen=True)
class Noun:
    """A noun. One that has several senses is translated by topic."""

    word: str
    plural: str
    kind: str  # person, thing or place
    topic: str = ""  # topic of a key word
    senses: bool = False  # a sense for each topic

    def sense(self, topic: str) -> str:
        """Key of its translation."""
        return in_register(self.word, topic) if self.senses else self.word


@dataclass(frozen=True)
class Verb:
    """A verb that takes an object, or none."""

    word: str
    third: str  # she ...s
    past: str
    takes_object: bool
    senses: bool = False

    def sense(self, topic: str) -> str:
        return in_register(f"to {self.word}", topic) if self.senses else f"to {self.word}"


_NOUNS = {
    "person": "man/men friend woman/women child/children king",
    "thing": "stone apple letter",
    "place": "garden market island",
}
# One sense for each topic.
_NOUNS_WITH_SENSES = {
    "person": "star master boss/bosses",
    "thing": "bass/basses scale note organ",
    "place": "bar yard",
}
_VERBS_WITH_SENSES = "draw drew | catch/catches caught | raise raised | miss/misses missed | strike struck"
# Nouns that are verbs too: the noun, then the past of the verb.
_BOTH = "guard guarded | judge judged | nurse nursed | escort escorted"
_WITH_OBJECT = "see saw | find found | avoid avoided | obey obeyed"
_WITHOUT_OBJECT = "wait waited | arrive arrived | sleep slept"

# The key words: each is rare and names a topic.
_KEYS = {
    ("harbour", "person"): "admiral smuggler boatswain helmsman stowaway pirate diver mermaid",
    ("harbour", "thing"): "anchor harpoon rudder sextant barnacle tugboat compass mast oar lobster",
    ("harbour", "place"): "pier lighthouse shipyard lagoon reef cove",
    ("stage", "person"): "violinist ballerina juggler puppeteer tenor understudy clown prompter",
    ("stage", "thing"): "trombone curtain libretto spotlight encore marionette tambourine costume aria cello",
    ("stage", "place"): "theatre rehearsal balcony opera foyer circus",
    ("farm", "person"): "shepherd ploughman milkmaid beekeeper miller stableboy vet gardener",
    ("farm", "thing"): "haystack pitchfork tractor beehive orchid scarecrow turnip rake saddle goose",
    ("farm", "place"): "barn meadow orchard vineyard pasture henhouse",
}

ADJECTIVES = (
    "old", "small", "angry", "new", "happy", "blue", "quiet", "black", "idle", "pale",
)  # fmt: skip
ADVERBS = ("often", "slowly", "always", "badly", "again", "never", "eagerly", "today")
PREPOSITIONS = ("in", "near", "behind", "above")
SINGULAR_DETERMINERS = ("the", "a", "this", "every", "my", "our", "no")
PLURAL_DETERMINERS = ("the", "some", "these", "two", "my", "our", "no")
NAMES = ("Anna", "Peter", "Maria", "Oscar")
PRONOUNS = {"I": 1, "we": 1, "you": 2, "he": 3, "she": 3, "they": 3}  # and their persons


def in_register(sense: str, topic: str) -> str:
    """Key of the translation of a word that differs by topic."""
    return f"{sense}/{topic}"


def _forms(text: str) -> tuple[str, str]:
    """The word and its form in -s, which is given explicitly if it is irregular."""
    word, _, form = text.partition("/")
    return word, form or f"{word}s"


def _verbs(table: str, *, takes_object: bool, senses: bool = False) -> list[Verb]:
    entries = [entry.split() for entry in table.split("|")]
    return [Verb(*_forms(text), past, takes_object, senses) for text, past in entries]


@cache
def nouns(kind: str) -> tuple[Noun, ...]:
    """The frequent nouns of a kind; those with several senses come early, so that most sentences have one."""
    entries = [Noun(*_forms(text), kind, senses=True) for text in _NOUNS_WITH_SENSES[kind].split()]
    entries += [Noun(*_forms(text), kind) for text in _NOUNS[kind].split()]
    if kind == "person":
        entries += [Noun(*_forms(entry.split()[0]), kind) for entry in _BOTH.split("|")]
    return tuple(entries)


@cache
def verbs(*, takes_object: bool) -> tuple[Verb, ...]:
    if not takes_object:
        return tuple(_verbs(_WITHOUT_OBJECT, takes_object=False))
    return (
        *_verbs(_VERBS_WITH_SENSES, takes_object=True, senses=True),
        *_verbs(_WITH_OBJECT, takes_object=True),
        *_verbs(_BOTH, takes_object=True),
    )


@cache
def keys(topic: str, kind: str) -> tuple[Noun, ...]:
    """The rare words of a kind that name a topic."""
    return tuple(Noun(*_forms(word), kind, topic) for word in _KEYS[topic, kind].split())


def all_nouns() -> tuple[Noun, ...]:
    frequent = (noun for kind in ("person", "thing", "place") for noun in nouns(kind))
    return (*frequent, *(noun for topic, kind in _KEYS for noun in keys(topic, kind)))


def all_verbs() -> tuple[Verb, ...]:
    return (*verbs(takes_object=True), *verbs(takes_object=False))
