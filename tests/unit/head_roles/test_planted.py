"""Planted truths: heads made to do one thing are found doing it, with the right label, and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel, MistralConfig, MistralForCausalLM

import headcount as hc
from headcount.corpora.alignment import pieces, pieces_of_words
from headcount.corpora.frequencies import count_tokens
from headcount.corpora.tree import Tree
from headcount.head_roles.evidence import held
from planted import at, offset, planted, tokenizer, trees, word_tokenizer_of
from tokens import word_tokenizer


def bert(vocabulary: int = 99, layers: int = 3) -> nn.Module:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=64, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=128, attn_implementation="eager",
    )  # fmt: skip
    return BertModel(config).eval()


def labels(found: Any, head: str) -> set[tuple[str, str]]:
    return {(one.role, one.label) for one in found[head] if one.holds}


def flat(found: Any, head: str) -> set[tuple[str, str]]:
    """Roles of a head that looks at all words alike, without syntax.

    Summed over pieces, the word spelled in most pieces is its maximum, and here that is often the noun of an adjective.
    """
    return {(role, label) for role, label in labels(found, head) if role != "syntactic"}


def by_sentence(marks: Any, found: Any) -> Any:
    """A pattern from a function of a tree and the tokens of its words, recognised by the ids of the sentence."""
    known = {tuple(marks(tree.text)["input_ids"]): tree for tree in trees()}

    def pattern(choose: Any) -> Any:
        def weights(ids: list[int]) -> Tensor:
            tree = known[tuple(ids)]
            spans = pieces(marks, tree.text).spans
            return choose(tree, pieces_of_words(tree.spans, spans), len(ids))

        return weights

    return pattern(found)


def to_syntactic_heads(tree: Tree, words: list[list[int]], size: int) -> Tensor:
    """Every piece of a word looks at one piece of the word it depends on; the root and specials at themselves."""
    places = list(range(size))
    for word, tokens in enumerate(words):
        for token in tokens:
            places[token] = words[tree.heads[word]][-1] if tree.heads[word] >= 0 else token
    return at(places, size)


def to_subjects(tree: Tree, words: list[list[int]], size: int) -> Tensor:
    places = list(range(size))
    for arc in tree.arcs("nsubj"):
        for token in words[arc.head]:
            places[token] = words[arc.dependent][0]
    return at(places, size)


def test_planted_heads_are_found_with_their_labels() -> None:
    marks, model = tokenizer(), bert()
    frequencies = count_tokens([tree.text for tree in trees(200)], marks)

    def to_rarest(ids: list[int]) -> Tensor:
        inner = range(1, len(ids) - 1)
        rarest = min(inner, key=lambda place: frequencies.count(ids[place]))
        return at([rarest] * len(ids), len(ids))

    patterns = {
        "encoder.0.0": offset(-1),
        "encoder.0.1": offset(2),
        "encoder.0.2": by_sentence(marks, to_syntactic_heads),
        "encoder.1.0": to_rarest,
        "encoder.1.1": lambda ids: at([1] * len(ids), len(ids)),
        "encoder.1.2": lambda ids: at([0] * len(ids), len(ids)),
        "encoder.2.0": by_sentence(marks, to_subjects),
    }
    with planted(model, patterns):
        found = hc.roles(model, trees(), tokenizer=marks, frequencies=frequencies, common=20)
    assert labels(found, "encoder.0.0") == {("positional", "-1")}
    assert labels(found, "encoder.0.1") == {("positional", "+2")}
    syntax = labels(found, "encoder.0.2")
    assert syntax >= {("syntactic", f"{one} {two}") for one, two in
                      (("nsubj", "s->v"), ("obj", "o->v"), ("advmod", "a->v"))}  # fmt: skip
    assert not syntax & {("syntactic", "nsubj v->s"), ("syntactic", "obj v->o"), ("syntactic", "advmod v->a")}
    assert ("rare", "two rarest") in labels(found, "encoder.1.0")
    assert {role for role, _ in labels(found, "encoder.1.0")} == {"rare"}
    assert labels(found, "encoder.1.1") == {("delimiter", "first")}
    assert flat(found, "encoder.1.2") == {("delimiter", "start")}
    assert labels(found, "encoder.2.0") >= {("syntactic", "nsubj v->s")}
    assert ("syntactic", "nsubj s->v") not in labels(found, "encoder.2.0")
    for head in ("encoder.0.3", "encoder.1.3", "encoder.2.3"):  # look everywhere alike: a tie is no maximum
        assert flat(found, head) == set()
        assert all(one.value == 0 for one in found[head] if one.role != "syntactic")
    assert found.confidence["encoder.0.0"].value == pytest.approx(0.8)
    assert found.held()["encoder.0.0"] == held(found["encoder.0.0"])


def test_splitting_words_does_not_change_a_syntactic_verdict() -> None:
    whole, split = word_tokenizer_of(trees()), tokenizer(whole=8)
    values = []
    for marks in (whole, split):
        model = bert(vocabulary=len(marks), layers=1)
        patterns = {
            "encoder.0.0": by_sentence(marks, to_syntactic_heads),
            "encoder.0.1": by_sentence(marks, to_subjects),
        }
        with planted(model, patterns):
            found = hc.roles(model, trees(), tokenizer=marks, roles=["syntactic"])
        heads = ("encoder.0.0", "encoder.0.1")
        values.append({(h, e.label): (e.value, e.baseline, e.trials, e.holds) for h in heads for e in found[h]})
    assert values[0] == values[1]
    assert any(holds for *_, holds in values[0].values())


@pytest.mark.parametrize(("trials", "verdict"), [(2, None), (29, None), (40, False), (60, True)])
def test_a_verdict_takes_thirty_trials_and_more_to_be_certain(trials: int, verdict: bool | None) -> None:
    """In a sentence of two tokens one query has a token at -1: the head always looks there.

    A head that looks there in 90% of trials would do so in 40 of 40 with p = .015, and 8 such verdicts are asked for.
    """
    marks, model = tokenizer(), bert(layers=1)
    with planted(model, {"encoder.0.0": offset(-1)}):
        found = hc.roles(model, ["a b"] * trials, tokenizer=marks, roles=["positional"], resamples=20)
    (before,) = (one for one in found["encoder.0.0"] if one.label == "-1")
    assert (before.value, before.trials, before.holds) == (1.0, trials, verdict)
    assert before.p == pytest.approx(0.9**trials)
    assert before.certain is bool(verdict)
    assert labels(found, "encoder.0.0") == ({("positional", "-1")} if verdict else set())


def test_a_tie_is_no_maximum() -> None:
    """Two keys with the same weight, or weights that differ by rounding alone: no maximum."""
    marks, model = tokenizer(), bert(layers=1)

    def two(ids: list[int]) -> Tensor:
        weights = at([max(1, query - 1) for query in range(len(ids))], len(ids), 0.4)
        weights[:, len(ids) - 2] = 0.4 * (1 - 1e-8)
        return weights

    with planted(model, {"encoder.0.0": two, "encoder.0.1": offset(-1)}):
        found = hc.roles(model, trees(), tokenizer=marks, roles=["positional"])
    assert all(one.value < 0.1 for one in found["encoder.0.0"])
    assert labels(found, "encoder.0.1") == {("positional", "-1")}


def test_offsets_planted_in_weights() -> None:
    """No stub: positions are one-hot, and the query projection of a head shifts them."""
    marks, model = tokenizer(), bert(layers=1)
    short = [tree for tree in trees(200) if len(marks(tree.text)["input_ids"]) <= 16][:30] * 4
    embeddings, attention = model.embeddings, model.encoder.layer[0].attention.self
    with torch.no_grad():
        for table in (embeddings.word_embeddings, embeddings.token_type_embeddings, embeddings.position_embeddings):
            table.weight.zero_()
        embeddings.position_embeddings.weight[:16, :16] = torch.eye(16)
        for projection in (attention.query, attention.key):
            projection.weight.zero_()
            projection.bias.zero_()
        for head, by in enumerate((-1, 2, 0)):
            for place in range(16):
                attention.key.weight[16 * head + place, place] = 3.0
                if 0 <= place + by < 16:
                    attention.query.weight[16 * head + place + by, place] = 3.0
    found = hc.roles(model, short, tokenizer=marks, roles=["positional", "current-token", "same-token"])
    assert labels(found, "encoder.0.0") == {("positional", "-1")}
    assert labels(found, "encoder.0.1") == {("positional", "+2")}
    assert labels(found, "encoder.0.2") == {("current-token", "itself")}  # offset 0 is no positional head of the paper
    assert labels(found, "encoder.0.3") == set()


def test_same_token_and_induction() -> None:
    marks, model = tokenizer(), bert(layers=1)
    texts = ["the dog saw the dog", "a man and a woman saw a man", "dog saw dog saw dog"]

    def again(ids: list[int]) -> Tensor:
        places = [next((k for k in range(len(ids)) if k != q and ids[k] == ids[q]), 0) for q in range(len(ids))]
        return at(places, len(ids))

    def after(ids: list[int]) -> Tensor:
        places = [next((k + 1 for k in range(q - 1) if ids[k] == ids[q]), 0) for q in range(len(ids))]
        return at(places, len(ids))

    with planted(model, {"encoder.0.0": again, "encoder.0.1": after}):
        found = hc.roles(model, texts * 5, tokenizer=marks, roles=["same-token", "current-token", "induction"])
    assert labels(found, "encoder.0.0") == {("same-token", "another occurrence")}
    assert labels(found, "encoder.0.1") >= {("induction", "after the last time")}
    assert labels(found, "encoder.0.2") == set()


def test_readings_change_the_verdict() -> None:
    """Edges, diagonal, margin and thresholds, each on a head at the border."""
    marks, model = tokenizer(), bert(layers=1)

    def mostly_itself(ids: list[int]) -> Tensor:
        weights = at(list(range(len(ids))), len(ids), 0.5)
        for query in range(1, len(ids) - 1):
            weights[query, max(1, query - 1)] += 0.2
        return weights

    with planted(model, {"encoder.0.0": offset(2), "encoder.0.1": mostly_itself}):
        chosen = ["positional", "current-token"]
        usual = hc.roles(model, trees(), tokenizer=marks, roles=chosen)
        every = hc.roles(model, trees(), tokenizer=marks, roles=chosen, edges="all")
        outside = hc.roles(model, trees(), tokenizer=marks, roles=chosen, diagonal=False)
        strict = hc.roles(model, trees(), tokenizer=marks, roles=chosen, thresholds=dict.fromkeys(chosen, 1.01))
    value = {name: next(e.value for e in found["encoder.0.0"] if e.label == "+2") for name, found in
             (("usual", usual), ("every", every))}  # fmt: skip
    assert value["usual"] == 1.0
    assert value["every"] < 1.0
    assert labels(usual, "encoder.0.1") == {("current-token", "itself")}
    assert labels(outside, "encoder.0.1") == {("positional", "-1")}
    assert not [one for one in outside["encoder.0.1"] if one.role == "current-token"]
    assert not any(labels(strict, head) for head in ("encoder.0.0", "encoder.0.1"))
    with planted(model, {"encoder.0.0": by_sentence(marks, to_subjects)}):
        relative = hc.roles(model, trees(), tokenizer=marks, roles=["syntactic"], relations=["nsubj"], excess=0.5)
        points = hc.roles(
            model, trees(), tokenizer=marks, roles=["syntactic"], relations=["nsubj"], excess=0.5, margin="points"
        )
    one, other = (found["encoder.0.0"][0] for found in (relative, points))
    assert one.threshold == pytest.approx(1.5 * one.baseline)
    assert other.threshold == pytest.approx(other.baseline + 0.5)


@pytest.mark.parametrize("window", [8, None])
def test_keys_outside_a_sliding_window_are_no_targets(window: int | None) -> None:
    """A head that attends to the same token whenever it can see one has the role, in local layers too."""
    config = MistralConfig(
        hidden_size=128, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=128,
        intermediate_size=32, vocab_size=99, max_position_embeddings=128, sliding_window=window, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, rope_parameters={"rope_type": "default", "rope_theta": 1e12},
    )  # fmt: skip
    torch.manual_seed(0)
    model = MistralForCausalLM(config).eval()
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        embeddings.copy_(10 * torch.nn.functional.normalize(torch.randn(99, 128), dim=-1))
        attention = model.model.layers[0].self_attn
        for projection in (attention.q_proj, attention.k_proj):
            projection.weight.copy_(3 * torch.eye(128))
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{number}" for number in random.integers(3, 23, 40)) for _ in range(20)]
    (found,) = hc.roles(model, texts, tokenizer=word_tokenizer(), roles=["same-token"], diagonal=False)["decoder.0.0"]
    assert found.value == pytest.approx(1.0)
    trials = sum(
        ids[place] in ids[max(0, place - (window or 99) + 1) : place] and place > 1  # one key is no choice
        for ids in ([int(word[1:]) for word in text.split()] for text in texts)
        for place in range(len(ids))
    )
    assert found.trials == trials
