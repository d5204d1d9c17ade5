"""The embedded corpus: sound trees, no overlap, and translations that depend on what they are said to depend on."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from headcount.corpora.grammar import lexicon
from headcount.corpora.grammar.corpus import SIZES, Grammar
from headcount.corpora.grammar.english import english, tree
from headcount.corpora.grammar.generator import Generator
from headcount.corpora.grammar.languages.language import languages
from headcount.corpora.grammar.syntax import Clause, Nominal, Sentence
from headcount.corpora.parallel import read_parallel
from headcount.errors import UnknownName

NOUNS = {noun.word: noun for noun in lexicon.all_nouns()}
VERBS = {verb.word: verb for verb in lexicon.all_verbs()}
LANGUAGES = ("bare", "light", "rich")


def noun(word: str, **details: object) -> Nominal:
    return Nominal(NOUNS[word], **{"determiner": "the", **details})  # type: ignore[arg-type]


def translate(language: str, clause: Clause, topic: str = "farm") -> list[str]:
    return languages[language]().translate(english(Sentence(clause, topic))).split()


@pytest.fixture(scope="module")
def splits() -> dict[str, list]:
    return Grammar(train=3000).splits()


def test_vocabulary_is_small() -> None:
    """Heads of a tiny model specialise within minutes only where words are few."""
    forms = Counter(word for row in Grammar(train=3000).split("train") for word in row.tree.words)
    assert 150 < len(forms) < 230


def test_trees_are_trees(splits: dict[str, list]) -> None:
    for example in splits["train"]:
        parsed = example.tree
        assert parsed.heads.count(-1) == 1
        assert parsed.relations[parsed.heads.index(-1)] == "root"
        for word in range(len(parsed)):
            seen, index = set(), word
            while parsed.heads[index] != -1:
                assert index not in seen
                seen.add(index)
                index = parsed.heads[index]
        assert [parsed.text[start:end] for start, end in parsed.spans] == list(parsed.words)
        assert 4 <= len(parsed) <= 14


def test_relations_are_those_of_universal_dependencies(splits: dict[str, list]) -> None:
    relations = Counter(relation for example in splits["train"] for relation in example.tree.relations)
    assert set(relations) == {
        "root", "nsubj", "obj", "amod", "advmod", "det", "nummod", "nmod", "case", "obl", "aux", "conj", "cc",
    }  # fmt: skip
    for relation in ("nsubj", "obj", "amod", "advmod"):  # what the papers measure must be frequent
        assert relations[relation] > 2000


@pytest.mark.parametrize("domain", ["written", "dialogue"])
@pytest.mark.parametrize("relation", ["nsubj", "obj", "amod", "advmod"])
def test_no_fixed_offset_finds_most_partners(domain: str, relation: str) -> None:
    """A syntactic head must be able to beat the best fixed offset by a tenth."""
    offsets = Counter(
        arc.head - arc.dependent
        for row in Grammar(domain=domain, train=3000).split("train")
        for arc in row.tree.arcs(relation)
    )
    assert max(offsets.values()) <= 0.60 * sum(offsets.values())


def test_splits_share_no_sentence(splits: dict[str, list]) -> None:
    texts = {split: {example.tree.text for example in rows} for split, rows in splits.items()}
    assert {split: len(rows) for split, rows in texts.items()} == {**SIZES, "train": 3000}
    assert set(texts) == {"train", "dev", "test", "test2", "ood"}
    names = list(texts)
    assert not any(texts[first] & texts[second] for first in names for second in names if first < second)


def test_the_same_seed_gives_the_same_sentences() -> None:
    def texts(seed: str) -> list[str]:
        generator = Generator("written", seed)
        return [tree(english(generator.sentence())).text for _ in range(50)]

    assert texts("a seed") == texts("a seed")
    assert texts("a seed") != texts("another")


def test_domains_differ_as_the_paper_says(splits: dict[str, list]) -> None:
    """Long, third person; short, first and second person (Voita et al. 2019, section 5.2.2)."""
    length = {split: sum(len(row.tree) for row in splits[split]) / 1000 for split in ("test", "ood")}
    assert length["test"] > length["ood"] + 1

    def first_or_second(split: str) -> float:
        subjects = [row.tree.words[arc.dependent] for row in splits[split] for arc in row.tree.arcs("nsubj")]
        return sum(lexicon.PRONOUNS.get(word, 3) < 3 for word in subjects) / len(subjects)

    assert first_or_second("test") < 0.15
    assert first_or_second("ood") > 0.4


def test_every_sentence_has_one_key_word_of_its_topic() -> None:
    generator = Generator("written", "keys")
    for _ in range(300):
        sentence = generator.sentence()
        topics = [NOUNS[word.sense].topic for word in english(sentence) if word.sense in NOUNS]
        assert [topic for topic in topics if topic] == [sentence.topic]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sense_has_a_translation_of_its_own(language: str) -> None:
    stems = languages[language]().stems
    senses = {entry.sense(topic) for entry in (*NOUNS.values(), *lexicon.all_verbs()) for topic in lexicon.TOPICS}
    senses |= {lexicon.in_register(word, topic) for word in lexicon.ADJECTIVES for topic in lexicon.TOPICS}
    words = [stems[sense] for sense in senses]
    assert len(set(words)) == len(words)
    assert not set(words) & set(languages[language]().proclitics())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_topic_decides_the_sense(language: str) -> None:
    clause = Clause(VERBS["draw"], "past", noun("king"), noun("note"))
    stems = {topic: set(translate(language, clause, topic)[1::2]) for topic in lexicon.TOPICS}
    for first, second in (("farm", "stage"), ("stage", "harbour")):
        assert len(stems[first] - stems[second]) >= 3  # the verb, a noun, the article


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_word_beside_it_tells_a_noun_from_a_verb(language: str) -> None:
    stems = languages[language]().stems
    assert stems["guard"] != stems["to guard"]
    clause = Clause(VERBS["guard"], "present", noun("judge", plural=True), noun("nurse", plural=True))
    assert tree(english(Sentence(clause, "farm"))).text == "the judges guard the nurses"


@pytest.mark.parametrize("language", LANGUAGES)
def test_neighbours_decide_onset_and_coda(language: str) -> None:
    """The same word between other words has another onset and coda, and nothing else of its proclitic changes."""
    speaker = languages[language]()
    onsets: defaultdict[str, set[str]] = defaultdict(set)
    codas: defaultdict[str, set[str]] = defaultdict(set)
    vowels = (*speaker.vowels, speaker.vowel_alone)
    generator = Generator("written", "neighbours")
    for _ in range(200):
        words = english(generator.sentence())
        for index, word in enumerate(words):
            proclitic = speaker._proclitic(word, words)
            vowel = next(place for place, sound in enumerate(proclitic) if sound in "".join(vowels))
            if index:
                onsets[words[index - 1].form].add(proclitic[:vowel])
            if index + 1 < len(words):
                codas[words[index + 1].form].add(proclitic[vowel + 1 :])
    assert all(len(sounds) == 1 for sounds in (*onsets.values(), *codas.values()))
    assert {next(iter(sounds)) for sounds in onsets.values()} == set(speaker.onsets)
    assert {next(iter(sounds)) for sounds in codas.values()} == set(speaker.codas)


def test_partners_decide_vowels_across_what_stands_between() -> None:
    """rich: the verb shows its subject, the object and adverbs their verb, adjectives their noun."""
    speaker = languages["rich"]()
    near = Clause(VERBS["see"], "past", noun("king"), noun("stone", adjectives=["old"]), {"front": "often"})
    far = Clause(
        VERBS["see"], "past", noun("king", possessor=noun("woman")),
        noun("stone", adjectives=["old", "new"], joined=True), {"front": "often"},
    )  # fmt: skip

    def vowels(clause: Clause) -> dict[str, str]:
        words = english(Sentence(clause, "farm"))
        return {word.form: speaker._proclitic(word, words)[1] for word in words}

    classes = {sense: speaker.word_class(sense) for sense in ("king", "to see", "stone")}
    for clause in (near, far):
        assert vowels(clause)["saw"] == classes["king"]
        assert vowels(clause)["stone"] == vowels(clause)["often"] == classes["to see"]
        assert vowels(clause)["old"] == classes["stone"]
    assert vowels(far)["new"] == classes["stone"]
    assert vowels(near)["king"] == speaker.vowel_alone


def test_the_partner_is_spoken_after_the_word_that_shows_it() -> None:
    words = translate("rich", Clause(VERBS["see"], "past", noun("king"), noun("stone", adjectives=["old"])))
    stems = languages["rich"]().stems
    order = [words.index(stems[sense]) for sense in ("old/farm", "stone")]
    order += [words.index(stems["to see"] + "ev"), words.index(stems["king"])]
    assert order == sorted(order)


def test_a_question_has_an_auxiliary_of_its_own() -> None:
    parts = {"subject": noun("king"), "object": noun("stone")}
    statement = translate("rich", Clause(VERBS["see"], "future", **parts))
    question = translate("rich", Clause(VERBS["see"], "future", mood="question", **parts))
    assert statement[1] != question[1]


def test_by_name() -> None:
    assert Grammar.named("grammar") == Grammar("rich", "written")
    assert Grammar.named("grammar:bare:dialogue") == Grammar("bare", "dialogue")
    with pytest.raises(UnknownName, match="Known: bare, light, rich"):
        Grammar.named("grammar:german")
    with pytest.raises(UnknownName, match="Known: dialogue, written"):
        Grammar.named("grammar:rich:news")


def test_as_parallel_text() -> None:
    data = read_parallel("grammar:light:dialogue")
    assert data.languages == ("english", "light")
    assert set(data.splits) == {"train", "dev", "test", "test2", "ood"}
