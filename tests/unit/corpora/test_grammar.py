"""The embedded corpus: sound trees, no overlap, and translations that depend on what they are said to depend on."""

from __future__ import annotations

from collections import Counter

import pytest

from headcount.corpora.grammar import lexicon
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.grammar.english import english
from headcount.corpora.grammar.generator import Generator
from headcount.corpora.grammar.languages.language import languages
from headcount.corpora.grammar.syntax import Adjunct, Clause, Nominal, Sentence
from headcount.corpora.parallel import read_parallel
from headcount.errors import UnknownName

NOUNS = {noun.name: noun for noun in lexicon.nouns()}
VERBS = {verb.name: verb for verb in lexicon.verbs()}
ALL = ("bare", "light", "rich")


def the(noun: str, **details: object) -> Nominal:
    return Nominal(NOUNS[noun], determiner="the", **details)  # type: ignore[arg-type]


def say(language: str, clause: Clause) -> str:
    return languages[language]().translate(Sentence(clause))


@pytest.fixture(scope="module")
def splits() -> dict[str, list]:
    return Grammar(train=3000).splits()


def test_lexicon_is_large_and_sound() -> None:
    assert len({noun.word for noun in lexicon.nouns()}) > 150
    assert len({verb.word for verb in lexicon.verbs()}) > 90
    assert sum(map(len, (lexicon.ADJECTIVES, lexicon.MANNER, lexicon.NAMES))) > 130
    senses = Counter(noun.word for noun in lexicon.nouns() if noun.ambiguous)
    assert set(senses.values()) == {2}
    assert len(NOUNS) == len(lexicon.nouns()), "two nouns of one name would have one translation"
    assert len(VERBS) == len(lexicon.verbs())
    assert {noun.word for noun in lexicon.nouns()} & {verb.word for verb in lexicon.verbs()} >= {"guard", "watch"}


def test_trees_are_trees(splits: dict[str, list]) -> None:
    for example in splits["train"]:
        tree = example.tree
        assert tree.heads.count(-1) == 1
        assert tree.relations[tree.heads.index(-1)] == "root"
        for word in range(len(tree)):
            seen, now = set(), word
            while tree.heads[now] != -1:
                assert now not in seen
                seen.add(now)
                now = tree.heads[now]
        assert [tree.text[start:end] for start, end in tree.spans] == list(tree.words)


def test_relations_are_those_of_universal_dependencies(splits: dict[str, list]) -> None:
    found = Counter(relation for example in splits["train"] for relation in example.tree.relations)
    assert {"nsubj", "obj", "iobj", "amod", "advmod", "det", "obl", "nmod", "acl", "ccomp", "advcl", "conj"} <= set(
        found
    )
    for relation in ("nsubj", "obj", "amod", "advmod"):  # what the papers measure must be frequent
        assert found[relation] > 600
    tags = {
        (tag, relation)
        for example in splits["train"]
        for tag, relation in zip(example.tree.tags, example.tree.relations, strict=True)
    }
    assert {relation for tag, relation in tags if tag == "ADJ"} == {"amod"}
    assert {tag for tag, relation in tags if relation == "root"} == {"VERB"}


def test_dependents_depend_on_the_right_word(splits: dict[str, list]) -> None:
    verbs = {form for verb in lexicon.verbs() for form in (verb.word, verb.third, verb.past)}
    for example in splits["dev"]:
        tree = example.tree
        for arc in tree.arcs("nsubj", "obj", "iobj"):
            assert tree.words[arc.head].lower() in verbs
        for arc in tree.arcs("amod"):
            assert tree.tags[arc.head] == "NOUN"


def test_splits_share_no_sentence(splits: dict[str, list]) -> None:
    texts = {split: {example.tree.text for example in rows} for split, rows in splits.items()}
    assert {split: len(rows) for split, rows in texts.items()} == {
        "test": 1000,
        "dev": 1000,
        "ood": 1000,
        "train": 3000,
    }
    names = list(texts)
    assert not any(texts[a] & texts[b] for a in names for b in names if a < b)


def test_the_same_every_time() -> None:
    one, other = Generator("written", "a seed"), Generator("written", "a seed")
    assert [english(one.sentence()).text for _ in range(50)] == [english(other.sentence()).text for _ in range(50)]
    assert (
        english(Generator("written", "another").sentence()).text
        != english(Generator("written", "a seed").sentence()).text
    )


def test_domains_differ_as_the_paper_says(splits: dict[str, list]) -> None:
    """Long, third person; short, first and second person (Voita et al. 2019, section 5.2.2)."""
    length = {split: sum(len(row.tree) for row in splits[split]) / 1000 for split in ("test", "ood")}
    assert length["test"] > 1.3 * length["ood"]

    def first_person(split: str) -> float:
        subjects = [row.tree.words[arc.dependent] for row in splits[split] for arc in row.tree.arcs("nsubj")]
        return sum(word in ("I", "We", "we") for word in subjects) / len(subjects)

    assert first_person("ood") > 3 * first_person("test")


def test_words_have_a_zipfian_tail(splits: dict[str, list]) -> None:
    counts = sorted(Counter(word for row in splits["train"] for word in row.tree.words).values(), reverse=True)
    assert counts[0] > 500 * counts[len(counts) * 9 // 10]
    names = Counter(word for row in splits["train"] for word in row.tree.words if word in dict(lexicon.NAMES))
    assert len(names) > 50
    assert min(names.values()) < 5


@pytest.mark.parametrize("language", ALL)
def test_every_word_has_a_translation_of_its_own(language: str) -> None:
    stems = languages[language]().stems
    words = [stems[name] for name in (*NOUNS, *VERBS, *lexicon.ADJECTIVES)]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("language", ALL)
def test_a_sense_is_told_by_another_word(language: str) -> None:
    see = VERBS["see/object"]
    by_river = say(language, Clause(see, "past", the("farmer"), the("bank/country")))
    with_money = say(language, Clause(see, "past", the("lawyer"), the("bank/town")))
    assert by_river.split()[-1] != with_money.split()[-1]
    for seed in range(3):  # a sentence with such a word always has one that tells
        draw = Generator("written", str(seed))
        for _ in range(300):
            words = {word.lower() for word in english(draw.sentence()).words}
            if "bank" in words:
                forms = {
                    form
                    for noun in lexicon.nouns()
                    if noun.topic in ("country", "town") and not noun.ambiguous
                    for form in (noun.word, noun.plural)
                }
                assert words & forms


@pytest.mark.parametrize("language", ALL)
def test_part_of_speech_is_told_by_syntax(language: str) -> None:
    stems = languages[language]().stems
    assert stems["guard"] != stems["guard/object"]
    one = say(language, Clause(VERBS["guard/object"], "present", the("cook", plural=True), the("watch", plural=True)))
    other = say(language, Clause(VERBS["watch/object"], "present", the("cook", plural=True), the("guard", plural=True)))
    assert (
        english(
            Sentence(Clause(VERBS["guard/object"], "present", the("cook", plural=True), the("watch", plural=True)))
        ).text
        == "The cooks guard the watches."
    )
    assert not set(one.lower().rstrip(".").split()) >= set(other.lower().rstrip(".").split())


def test_the_verb_governs_the_case() -> None:
    objects = {
        verb: say("rich", Clause(VERBS[f"{verb}/object"], "past", the("dog"), the("cat"))).split()[-1]
        for verb in ("see", "help", "love", "hold")
    }
    assert len(set(objects.values())) == 4


def test_a_verb_agrees_across_attractors() -> None:
    """The verb's ending is the subject's, however far away it stands and whatever stands between."""
    chase = Clause(VERBS["chase/object"], "present", gap="subject")
    dog, dogs = the("dog"), the("dog", plural=True)
    endings = {}
    for name, subject in (("one", dog), ("many", dogs)):
        subject.relative = Clause(**{**chase.__dict__, "object": the("wolf", plural=name == "one"), "filler": subject})
        endings[name] = say("rich", Clause(VERBS["sleep/alone"], "present", subject)).split()[0]
    assert endings["one"] != endings["many"]
    simple = say("rich", Clause(VERBS["sleep/alone"], "present", the("dog"))).split()[0]
    assert endings["one"] == simple


def test_number_of_sheep_is_told_by_the_verb() -> None:
    one, many = (Clause(VERBS["sleep/alone"], "present", the("sheep", plural=plural)) for plural in (False, True))
    assert english(Sentence(one)).text == "The sheep sleeps."
    assert english(Sentence(many)).text == "The sheep sleep."
    assert say("rich", one).split()[1:] != say("rich", many).split()[1:]


def test_attachment_is_told_by_verb_and_noun() -> None:
    with_knife = Clause(VERBS["cut/object"], "past", the("cook"), the("cake"), adjuncts=[Adjunct("with", the("knife"))])
    cake = the("cake")
    cake.attached = Adjunct("with", the("candle"))
    with_candle = Clause(VERBS["cut/object"], "past", the("cook"), cake)
    knife, candle = english(Sentence(with_knife)), english(Sentence(with_candle))
    assert (knife.text, candle.text) == (
        "The cook cut the cake with the knife.",
        "The cook cut the cake with the candle.",
    )
    assert knife.words[knife.heads[knife.words.index("knife")]] == "cut"
    assert candle.words[candle.heads[candle.words.index("candle")]] == "cake"
    assert "kum" in say("rich", with_candle)
    assert "kum" not in say("rich", with_knife)


def test_order_depends_on_the_kind_of_clause() -> None:
    parts = {"subject": the("dog"), "object": the("cat")}
    statement = say("rich", Clause(VERBS["see/object"], "past", **parts))
    question = say("rich", Clause(VERBS["see/object"], "past", mood="question", **parts))
    verb = statement.split()[0].lower()
    assert question.rstrip("?").split()[-1] == verb


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
    assert set(data.splits) == {"train", "dev", "test", "ood"}
    assert data["dev"][0]["source"][-1] in ".?!"
