"""The English lexicon: every word with its forms and classes. Within a list, frequent words come first.

A word of two senses stands here twice, under two topics: only the other words of its sentence tell which is meant.
A noun that is also a verb, or a verb with two frames, is told apart by syntax alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

TOPICS = ("country", "town", "kitchen", "stage", "field", "harbour")
ANIMATE = ("person", "animal")


@dataclass(frozen=True)
class Noun:
    """One sense of a noun."""

    word: str
    plural: str
    kind: str  # person, animal, thing, tool or place
    topic: str  # empty: at home everywhere
    ambiguous: bool = False  # the same word has another sense

    @property
    def name(self) -> str:
        """What translations are looked up by."""
        return f"{self.word}/{self.topic}" if self.ambiguous else self.word

    @property
    def zero_plural(self) -> bool:
        return self.word == self.plural

    @property
    def animate(self) -> bool:
        return self.kind in ANIMATE


@dataclass(frozen=True)
class Verb:
    """One sense of a verb."""

    word: str
    third: str  # she ...s
    past: str
    frame: str  # alone, object, recipient (and object) or clause
    case: str = "accusative"  # of its object, in a language that has cases
    wants: str = ""  # only objects of this kind: animate or thing
    with_tool: bool = False  # "with the knife" belongs to the verb
    with_place: bool = False  # "in the garden" after the object belongs to the verb
    sense: str = ""

    @property
    def name(self) -> str:
        return f"{self.word}/{self.sense or self.frame}"


_NOUNS = {
    ("person", ""): "man/men woman/women child/children friend neighbour stranger boy girl king queen traveller widow twin guest orphan cousin hermit",
    ("person", "country"): "farmer hunter shepherd miller",
    ("person", "town"): "lawyer clerk banker mayor thief/thieves",
    ("person", "kitchen"): "baker waiter butcher chef",
    ("person", "stage"): "singer actor painter poet fiddler",
    ("person", "field"): "runner referee captain champion",
    ("person", "harbour"): "sailor fisherman/fishermen admiral smuggler",
    ("animal", ""): "dog cat horse bird wolf/wolves snake donkey owl",
    ("animal", "country"): "cow goat fox/foxes rabbit sheep/sheep deer/deer squirrel",
    ("animal", "harbour"): "gull whale crab dolphin salmon/salmon",
    ("thing", ""): "house letter stone box/boxes picture lamp chair coat clock door shoe mirror basket candle blanket",
    ("thing", "country"): "apple flower tree fence barrel plough",
    ("thing", "town"): "coin contract stamp newspaper desk invoice",
    ("thing", "kitchen"): "bread soup cake plate kettle oven onion",
    ("thing", "stage"): "song drum curtain costume violin melody/melodies",
    ("thing", "field"): "ball medal trophy/trophies racket goal whistle",
    ("thing", "harbour"): "boat anchor sail mast lantern cargo/cargoes",
    ("tool", ""): "stick key rope bucket needle",
    ("tool", "country"): "axe shovel rake",
    ("tool", "town"): "pencil ruler stapler",
    ("tool", "kitchen"): "knife/knives spoon fork ladle",
    ("tool", "stage"): "baton chisel",
    ("tool", "field"): "paddle javelin",
    ("tool", "harbour"): "hook harpoon oar",
    ("place", ""): "street garden room bridge village tower",
    ("place", "country"): "forest meadow stable hill",
    ("place", "town"): "office market square library/libraries",
    ("place", "kitchen"): "pantry/pantries cellar tavern",
    ("place", "stage"): "theatre gallery/galleries studio",
    ("place", "field"): "stadium gym track",
    ("place", "harbour"): "island beach/beaches lighthouse pier",
}  # fmt: skip

# word, then topic:kind of each of its senses
_HOMOGRAPHS = """
bank country:place town:place | bat country:animal field:tool | crane country:animal harbour:tool | seal harbour:animal town:thing
mouse/mice country:animal town:tool | star stage:person harbour:thing | pitcher kitchen:thing field:person | club field:tool stage:place
match/matches field:thing kitchen:tool | court town:place field:place | bass/bass harbour:animal stage:thing | pen country:place town:tool
note stage:thing town:thing | scale kitchen:tool stage:thing | bow stage:tool harbour:thing | date kitchen:thing town:thing
spring country:place town:thing | trunk country:thing harbour:thing | plant country:thing town:place | ring field:place town:thing
palm country:thing stage:thing | pitch/pitches field:place stage:thing | organ kitchen:thing stage:thing | jam kitchen:thing town:thing
"""  # fmt: skip

# Nouns that are verbs too: kind of the noun, then the verb's past and frame (and case, where not accusative).
_BOTH = """
guard person guarded object dative | cook person cooked object | judge person judged object genitive | guide person guided object
watch/watches thing watched object | paint thing painted object | hammer tool hammered object | brush/brushes tool brushed object
nurse person nursed object dative | host person hosted object | pilot person piloted object instrumental | doctor person doctored object genitive
cover thing covered object instrumental | name thing named object | record thing recorded object | tax/taxes thing taxed object dative
dance thing danced alone | walk place walked alone | dream thing dreamed alone | rest place rested alone
coach/coaches person coached object | ship thing shipped object | book thing booked object genitive | saddle thing saddled object
"""  # fmt: skip

# base, past (third person is regular but for /form), then frame and its details
_VERBS = """
see saw object | help helped object dative | find found object | love loved object genitive | follow followed object dative
want wanted object genitive | know knew object | like liked object dative | hear heard object | remember remembered object genitive
hold held object instrumental | trust trusted object dative | carry/carries carried object place | need needed object genitive
open opened object thing tool | cut cut object thing tool | break broke object thing tool | clean cleaned object tool | fix/fixes fixed object thing tool
hide hid object place | put put object thing place | throw threw object place | leave left object | visit visited object genitive
thank thanked object animate dative | obey obeyed object animate dative | greet greeted object animate | fear feared object genitive
own owned object thing instrumental | use used object thing instrumental | rule ruled object animate instrumental | touch/touches touched object tool
pull pulled object tool | lift lifted object tool | avoid avoided object genitive | admire admired object | ignore ignored object dative
envy/envies envied object animate genitive | steal stole object thing place | drop dropped object thing place | chase chased object animate
sleep slept alone | laugh laughed alone | sing sang alone | wait waited alone | swim swam alone | fall fell alone | arrive arrived alone
cry/cries cried alone | smile smiled alone | tremble trembled alone | work worked alone | kneel knelt alone | shiver shivered alone
give gave recipient | send sent recipient | show showed recipient | offer offered recipient | sell sold recipient | lend lent recipient | bring brought recipient
say said clause | think thought clause | hope hoped clause | believe believed clause | fear feared clause | claim claimed clause | know knew clause | forget forgot clause
"""  # fmt: skip

# One word, two verbs: with an object, and without; or with an animate object, and with a thing.
_TWO_FRAMES = """
run ran instrumental | grow grew accusative | stand stood genitive | move moved accusative | fly/flies flew instrumental | return returned dative
"""
_TWO_OBJECTS = """
charge charged accusative | call called dative | draw drew accusative | keep kept genitive | catch/catches caught instrumental | miss/misses missed genitive
"""

ADJECTIVES = [
    "old",
    "young",
    "small",
    "big",
    "little",
    "good",
    "new",
    "red",
    "white",
    "black",
    "happy",
    "sad",
    "poor",
    "rich",
    "kind",
    "tall",
    "strange",
    "quiet",
    "angry",
    "clever",
    "brave",
    "lazy",
    "green",
    "blue",
    "golden",
    "heavy",
    "broken",
    "empty",
    "dirty",
    "gentle",
    "proud",
    "hungry",
    "tired",
    "famous",
    "honest",
    "pale",
    "wild",
    "ancient",
    "wooden",
    "cold",
    "warm",
    "narrow",
    "silver",
    "foolish",
    "modest",
    "crooked",
    "faithful",
    "stubborn",
    "cheerful",
    "lonely",
    "rusty",
    "humble",
    "fierce",
    "hollow",
]
MANNER = [
    "quickly",
    "slowly",
    "quietly",
    "often",
    "always",
    "rarely",
    "suddenly",
    "gently",
    "proudly",
    "badly",
    "secretly",
    "happily",
    "calmly",
    "eagerly",
    "bravely",
    "politely",
    "carefully",
    "angrily",
    "lazily",
    "loudly",
]
TIMES = {
    "present": ("today", "now", "again", "sometimes"),
    "past": ("yesterday", "again", "earlier", "today"),
    "future": ("tomorrow", "soon", "again", "tonight"),
}
DEGREES = ["very", "quite", "rather", "too"]
PLACE_PREPOSITIONS = ["in", "near", "behind", "under", "beside", "on", "above"]
SUBORDINATORS = ["when", "because", "if", "while", "although", "before"]
CONJUNCTIONS = ["and", "but"]
NUMERALS = ["two", "three", "five", "seven"]

_NAMES = [
    "Anna:f",
    "Peter:m",
    "Maria:f",
    "John:m",
    "Clara:f",
    "David:m",
    "Helen:f",
    "Simon:m",
    "Laura:f",
    "Martin:m",
    "Julia:f",
    "Oscar:m",
    "Nora:f",
    "Victor:m",
    "Irene:f",
    "Felix:m",
    "Agnes:f",
    "Hugo:m",
    "Ruth:f",
    "Leon:m",
    "Edith:f",
    "Conrad:m",
    "Stella:f",
    "Gregor:m",
    "Miriam:f",
    "Bruno:m",
    "Olga:f",
    "Rupert:m",
    "Selma:f",
    "Magnus:m",
    "Greta:f",
    "Tobias:m",
    "Vera:f",
    "Edgar:m",
    "Ingrid:f",
    "Walter:m",
    "Zelda:f",
    "Quentin:m",
    "Ottilie:f",
    "Barnaby:m",
    "Philippa:f",
    "Cyrus:m",
    "Wilhelmina:f",
    "Ambrose:m",
    "Xenia:f",
    "Thaddeus:m",
    "Yolanda:f",
    "Leopold:m",
    "Beatrix:f",
    "Cornelius:m",
    "Dorothea:f",
    "Ignatius:m",
    "Ursula:f",
    "Balthazar:m",
    "Marigold:f",
    "Percival:m",
    "Henrietta:f",
    "Zachary:m",
    "Rosalind:f",
    "Octavian:m",
    "Theodora:f",
    "Lysander:m",
    "Gwendolyn:f",
    "Horatio:m",
    "Clementine:f",
    "Alistair:m",
    "Ophelia:f",
    "Montgomery:m",
    "Seraphina:f",
    "Bartholomew:m",
]
NAMES = tuple(tuple(name.split(":")) for name in _NAMES)  # (name, m or f)


def _entries(table: str) -> list[list[str]]:
    return [entry.split() for line in table.strip().splitlines() for entry in line.split("|")]


def _forms(text: str) -> tuple[str, str]:
    """The word and its form in -s, which is written out where it is not regular."""
    word, _, other = text.partition("/")
    return word, other or f"{word}s"


@cache
def nouns() -> tuple[Noun, ...]:
    found = [Noun(*_forms(text), kind, topic) for (kind, topic), texts in _NOUNS.items() for text in texts.split()]
    for text, *senses in _entries(_HOMOGRAPHS):
        for sense in senses:
            topic, kind = sense.split(":")
            found.append(Noun(*_forms(text), kind, topic, ambiguous=True))
    found += [Noun(*_forms(text), kind, "") for text, kind, *_ in _entries(_BOTH)]
    return tuple(found)


@cache
def verbs() -> tuple[Verb, ...]:
    found = []
    for text, past, frame, *details in _entries(_VERBS):
        found.append(_verb(text, past, frame, details))
    for text, past, case in _entries(_TWO_FRAMES):
        found += [_verb(text, past, "alone", []), _verb(text, past, "object", ["thing", case])]
    for text, past, case in _entries(_TWO_OBJECTS):
        for wants in ("animate", "thing"):
            verb = _verb(text, past, "object", [wants, case])
            found.append(Verb(**{**verb.__dict__, "sense": wants}))
    found += [_verb(text, past, frame, details) for text, _, past, frame, *details in _entries(_BOTH)]
    return tuple(found)


def _verb(text: str, past: str, frame: str, details: list[str]) -> Verb:
    cases = [detail for detail in details if detail in ("dative", "genitive", "instrumental")]
    wants = [detail for detail in details if detail in ("animate", "thing")]
    word, third = _forms(text)
    return Verb(
        word,
        third,
        past,
        frame,
        case=cases[0] if cases else "accusative",
        wants=wants[0] if wants else "",
        with_tool="tool" in details,
        with_place="place" in details,
    )
