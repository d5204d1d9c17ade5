"""What can go wrong with sentences, trees and options; and that measuring leaves no trace."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import betainc
from transformers import M2M100Config, M2M100ForConditionalGeneration

import headcount as hc
import zoo
from behaviour import hooks, identical, outputs, weights
from headcount.corpora.alignment import pieces
from headcount.corpora.conllu import read_conllu
from headcount.corpora.sentences import Sentences, read_sentences
from headcount.corpora.tree import Tree
from headcount.errors import CorpusError, UnknownName, UsageError
from headcount.head_roles.role import roles as members
from headcount.probes.positions import special_ids
from planted import tokenizer, trees
from tokens import m2m_100, sentences, word_tokenizer


def model() -> Any:
    return zoo.build("bert", "eager")


def short(count: int = 12) -> list[Tree]:
    return [tree for tree in trees(60) if len(tokenizer()(tree.text)["input_ids"]) <= 60][:count]


def test_the_model_is_left_as_it_was(bert: torch.nn.Module) -> None:
    before, made = weights(bert), outputs(bert)
    hc.roles(bert, short(), tokenizer=tokenizer())
    assert identical(before, weights(bert))
    assert identical(made, outputs(bert))

    def stop(part: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.roles(bert, short(), tokenizer=tokenizer(), progress=stop)
    assert hooks(bert) == 0
    assert bert.config._attn_implementation == "sdpa"
    assert identical(made, outputs(bert))


def test_batches_and_their_order_make_no_difference() -> None:
    found = [hc.roles(model(), short(20), tokenizer=tokenizer(), tokens=tokens, common=10) for tokens in (70, 4096)]
    for head in found[0].heads:
        for one, other in zip(found[0][head], found[1][head], strict=True):
            assert (one.role, one.label, one.trials) == (other.role, other.label, other.trials)
            np.testing.assert_allclose(
                [one.value, one.low, one.high, one.baseline], [other.value, other.low, other.high, other.baseline],
                atol=1e-5,
            )  # fmt: skip


def test_every_role_has_evidence_and_a_threshold() -> None:
    found = hc.roles(model(), short(), tokenizer=tokenizer(), common=10)
    seen = {one.role for head in found.heads for one in found[head]}
    assert seen == {name for name, role in members.items() if "self" in role.kinds}
    assert found.sentences == len(short())
    assert found.trees == len(short())
    for head in found.heads:
        for one in found[head]:
            assert one.trials > 0
            assert one.low <= one.value <= one.high or np.isnan([one.low, one.high]).all()
            assert one.certain in (True, False)


def test_plain_text_has_no_syntax() -> None:
    found = hc.roles(model(), [tree.text for tree in short()], tokenizer=tokenizer())
    assert not [one for head in found.heads for one in found[head] if one.role == "syntactic"]
    assert found.trees == 0
    assert found.relative == {}


def test_what_is_left_out_is_counted() -> None:
    odd = Tree("the  dog", ("the", " ", "dog"), ((0, 3), (3, 4), (5, 8)), (2, 2, -1), ("det", "dep", "root"))
    corpus = [*short(4), "", "   ", "dog " * 80, odd]
    found = hc.roles(model(), corpus, tokenizer=tokenizer())
    assert found.skipped == {
        "empty": 2,
        "more than the model's 64 tokens": 1,
        "words without tokens of their own (syntactic only)": 1,
    }
    assert found.sentences == 5


def test_words_that_share_a_token_are_one() -> None:
    """Parts of a contraction cannot be told apart: their own relation is left out and counted."""
    tree = Tree("dog", ("do", "g"), ((0, 3), (0, 3)), (-1, 0), ("root", "nsubj"))
    found = hc.roles(model(), [tree, *short(4)], tokenizer=tokenizer())
    assert found.skipped["relations within one token (syntactic only)"] == 1


def test_one_word_is_no_choice() -> None:
    """A maximum among one is no finding; only specials could have been looked at instead."""
    found = hc.roles(model(), ["a", "i"], tokenizer=tokenizer())
    for head in found.heads:
        assert {(one.role, one.label) for one in found[head]} == {("delimiter", "start"), ("delimiter", "end")}
        assert found.confidence[head].value > 0


@pytest.mark.parametrize("corpus", [[], [""], ["  ", ""]])
def test_nothing_to_look_at_is_an_error(corpus: list[str]) -> None:
    with pytest.raises(CorpusError, match="No usable sentence"):
        hc.roles(model(), corpus, tokenizer=tokenizer())


def test_wrong_usage_is_named() -> None:
    live = model()
    with pytest.raises(UnknownName, match=r"'nsubjj'.*nsubj"):
        hc.roles(live, short(), tokenizer=tokenizer(), relations=["nsubjj"])
    with pytest.raises(UnknownName, match=r"role.*'positionall'.*positional"):
        hc.roles(live, short(), tokenizer=tokenizer(), roles=["positionall"])
    with pytest.raises(UnknownName, match="margin"):
        hc.roles(live, short(), tokenizer=tokenizer(), margin="absolute")
    with pytest.raises(UnknownName, match="direction"):
        hc.roles(live, short(), tokenizer=tokenizer(), directions=["up"])
    with pytest.raises(UsageError, match="list of sentences"):
        hc.roles(live, "The dog.", tokenizer=tokenizer())
    with pytest.raises(CorpusError, match="Sentence 0 is int"):
        hc.roles(live, [3, 4], tokenizer=tokenizer(), roles=["positional"])
    with pytest.raises(CorpusError, match="only 1 translations"):
        hc.roles(zoo.build("marian", "eager"), ["the dog", "the man"], targets=["the"], tokenizer=tokenizer())


def test_dobj_is_obj() -> None:
    found = hc.roles(model(), short(), tokenizer=tokenizer(), relations=["dobj"], roles=["syntactic"])
    assert {one.label for one in found["encoder.0.0"]} == {"obj v->o", "obj o->v"}


def test_any_relation_and_one_direction() -> None:
    found = hc.roles(
        model(), short(), tokenizer=tokenizer(), relations=["det"], roles=["syntactic"], directions=["dependent->head"]
    )
    assert {one.label for one in found["encoder.0.0"]} == {"det d->h"}


def test_a_causal_model_is_asked_for_what_it_can_see() -> None:
    llama = zoo.build("llama", "eager")
    found = hc.roles(llama, short(), tokenizer=tokenizer(), common=10)
    offsets = [one.label for one in found["decoder.0.0"] if one.role == "positional"]
    assert offsets == ["-5", "-4", "-3", "-2", "-1"]


@pytest.mark.parametrize("common", [None, 3])
def test_how_many_tokens_are_common_is_in_the_signature(common: int | None) -> None:
    """Scaled by the number of types in the corpus if not given, never the paper's 500 of a vocabulary of 99."""
    texts = [tree.text for tree in short()]
    types = {token for text in texts for token in tokenizer()(text, add_special_tokens=False)["input_ids"]}
    found = hc.roles(model(), texts, tokenizer=tokenizer(), resamples=20, common=common)
    expected = common or min(range(1, 99), key=lambda k: abs(k - len(types) ** (np.log(500) / np.log(32_000))))
    assert found.signature.arguments["common"] == expected
    assert [one for one in found["encoder.0.0"] if one.role == "rare"]


def test_intervals_shrink_with_data() -> None:
    live, marks = model(), tokenizer()
    few, many = (hc.roles(live, short(count), tokenizer=marks, roles=["positional"]) for count in (8, 40))
    wide = [one.high - one.low for head in few.heads for one in few[head]]
    narrow = [one.high - one.low for head in many.heads for one in many[head]]
    assert np.mean(narrow) < 0.7 * np.mean(wide)


def test_the_public_name_is_the_function_whatever_was_imported_before() -> None:
    importlib.import_module("headcount.head_roles.measure")
    assert inspect.isfunction(hc.roles)


def test_malformed_treebanks_are_counted(tmp_path: Path) -> None:
    good = "1\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tran\t_\tVERB\t_\t_\t1\tnsubj\t_\t_\n\n"
    bad = "1\tdog\t_\tNOUN\t_\t_\t7\troot\t_\t_\n\n1\tdog\n\n1\ta\t_\t_\t_\t_\t1\tx\t_\t_\n\n"
    (tmp_path / "bank.conllu").write_text(good + bad)
    found = read_sentences(tmp_path / "bank.conllu")
    assert len(found) == 1
    assert sum(found.skipped.values()) == 3
    (tmp_path / "bad.conllu").write_text(bad)
    with pytest.raises(CorpusError, match="no sentence in CoNLL-U"):
        read_sentences(tmp_path / "bad.conllu")
    with pytest.raises(CorpusError, match=r"bank.conllu:4"):
        read_conllu(tmp_path / "bank.conllu")


def test_sentences_from_anywhere(tmp_path: Path) -> None:
    embedded = read_sentences("grammar:light:dialogue", split="dev", limit=5)
    assert embedded.trees == 5
    assert embedded.targets is not None
    assert len(embedded.targets) == 5
    (tmp_path / "lines.txt").write_text("One sentence.\n\nAnother one.\n")
    plain = read_sentences(tmp_path / "lines.txt")
    assert list(plain) == ["One sentence.", "Another one."]
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "dev.en").write_text("a\nb\n")
    (tmp_path / "p" / "dev.de").write_text("x\ny\n")
    both = read_sentences(tmp_path / "p", split="dev", languages=("en", "de"), limit=1)
    assert (list(both), both.targets) == (["a"], ["x"])
    with pytest.raises(CorpusError, match="Give grammar, a treebank"):
        read_sentences(tmp_path / "none.txt")
    assert Sentences(["a"]).fingerprint != Sentences(["b"]).fingerprint


def test_languages_of_m2m_100_are_special(tmp_path: Path) -> None:
    """They stand before every text, have ids beyond the length of the tokenizer, and are not among its special ids."""
    texts = [tree.text for tree in short()]
    many, sizes = m2m_100(tmp_path, texts), dict.fromkeys(("encoder_layers", "decoder_layers"), 1)
    torch.manual_seed(0)
    translator = M2M100ForConditionalGeneration(
        M2M100Config(vocab_size=300, d_model=32, encoder_ffn_dim=32, decoder_ffn_dim=32, pad_token_id=1, **sizes)
    ).eval()
    found = hc.roles(translator, texts, tokenizer=many, targets=texts, resamples=10)
    tokens = sum(len(many.tokenize(text)) for text in texts)
    (near,) = [item for item in found["cross.0.0"] if item.label == "diagonal"]
    assert near.trials == tokens
    assert special_ids(translator, many) >= {many.get_lang_id("en"), many.get_lang_id("de")}


def test_an_unknown_token_that_marks_the_ends_is_special() -> None:
    """OPT's </s> is unknown token, start and end at once, and stands before every text."""
    opt, texts = zoo.build("opt", "eager"), sentences(12)
    one, other = word_tokenizer(framed=True), word_tokenizer(framed=True)
    other.unk_token = other.eos_token
    assert special_ids(opt, other) == special_ids(opt, one)
    assert pieces(other, texts[0]) == pieces(one, texts[0])
    found = [hc.roles(opt, texts, tokenizer=marks, resamples=20) for marks in (one, other)]
    values = [[(item.label, item.trials, item.value) for item in one["decoder.0.0"]] for one in found]
    assert values[0] == values[1]
    assert found[0].left_out == found[1].left_out
    tasks = [hc.task("language-modelling", texts=texts, tokenizer=marks) for marks in (one, other)]
    assert hc.score("confidence", opt, tasks[0]) == hc.score("confidence", opt, tasks[1])


def test_runs_of_a_shared_layer_are_no_further_sentences() -> None:
    """ALBERT runs one layer three times; p is that of the sentences, and relations are those of the text."""
    chosen, marks = short(20), tokenizer()
    albert, bert = (
        hc.roles(zoo.build(name, "eager"), chosen, tokenizer=marks, resamples=20, common=10)
        for name in ("albert", "bert")
    )
    assert albert.relative == bert.relative
    for one, other in zip(albert["encoder.0.0"], bert["encoder.0.0"], strict=True):
        assert (one.label, one.trials, one.baseline) == (other.label, other.trials, pytest.approx(other.baseline))
    (itself,) = [one for one in albert["encoder.0.0"] if one.label == "itself"]
    lengths = [len(marks(tree.text, add_special_tokens=False)["input_ids"]) for tree in chosen]
    count = sum(lengths) ** 2 / sum(length**2 for length in lengths)
    hits = itself.value * count
    assert itself.p == pytest.approx(betainc(hits, count - hits + 1, itself.threshold))


def test_a_decoder_does_not_read_the_punctuation_of_the_source() -> None:
    """Source and target have equally many tokens; only the source has marks."""
    translator = zoo.build("marian", "eager")
    found = hc.roles(translator, ["a , b c ."] * 8, targets=["a b c d e"] * 8, tokenizer=tokenizer(), resamples=20)
    assert "punctuation" in {one.label for one in found["encoder.0.0"]}
    assert "punctuation" not in {one.label for one in found["decoder.0.0"]}


def test_more_translations_than_sentences_are_refused() -> None:
    with pytest.raises(CorpusError, match="more translations than the 2 sentences"):
        hc.roles(zoo.build("marian", "eager"), ["the dog", "the man"], targets=["a"] * 3, tokenizer=tokenizer())
