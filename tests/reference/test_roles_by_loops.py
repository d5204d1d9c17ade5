"""Roles and confidence against slow loops that follow the definitions, one sentence at a time, no padding."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headcount as hc
import laboratory
import zoo
from headcount.corpora.alignment import pieces, pieces_of_words
from headcount.corpora.frequencies import Frequencies, count_tokens
from headcount.corpora.tree import Tree
from planted import tokenizer, trees

Sums = dict[tuple[str, str, str], list[float]]  # head, role, label -> hits, trials, chance
RELATIONS = {"nsubj": ("v", "s"), "obj": ("v", "o"), "amod": ("n", "a"), "advmod": ("v", "a")}


def best(row: list[float], places: list[int]) -> int | None:
    """The one place with the largest weight, if there is one."""
    top = max(row[place] for place in places)
    there = [place for place in places if row[place] >= top * (1 - 1e-6)]
    return there[0] if len(there) == 1 and top > 0 else None


def tokens_of(row: list[float], seen: list[int], sums: Sums, head: str, role: str, label: str, targets: Any) -> None:
    """One trial of a role in which a query looks at tokens."""
    wanted = [place for place in seen if place in targets]
    if not wanted or len(seen) < 2:
        return
    entry = sums[head, role, label]
    entry[0] += best(row, seen) in wanted
    entry[1] += 1
    entry[2] += len(wanted) / len(seen)


def one_sentence(
    sums: Sums, head: str, weights: list[list[float]], ids: list[int], spans: Any, text: str, *,
    causal: bool, frequencies: Frequencies, common: int,
) -> None:  # fmt: skip
    tokens = [place for place, span in enumerate(spans) if span is not None]
    specials = [place for place, span in enumerate(spans) if span is None]
    counts = {ids[place]: frequencies.count(ids[place]) for place in tokens}
    ordered = sorted(counts, key=lambda token: counts[token])
    rare = frequencies.rank(ordered[0]) > common
    first_count, second_count = counts[ordered[0]], counts[ordered[min(1, len(ordered) - 1)]]
    punctuation = {place for place in tokens if text[spans[place][0] : spans[place][1]] in (".", "!", "?", ",")}
    for query in tokens:
        row = weights[query]
        seen = [key for key in tokens if not causal or key <= query]
        marks = [key for key in specials if not causal or key <= query]
        entry = sums[head, "confidence", ""]
        entry[0] += max(row[key] for key in tokens)
        entry[1] += 1
        entry[2] += sum(row[key] for key in specials)
        for by in (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5):
            tokens_of(row, seen, sums, head, "positional", f"{by:+d}", {query + by})
        tokens_of(row, seen, sums, head, "current-token", "itself", {query})
        if rare:
            rarest = {key for key in tokens if counts[ids[key]] <= first_count}
            two = {key for key in tokens if counts[ids[key]] <= second_count}
            tokens_of(row, seen, sums, head, "rare", "rarest", rarest)
            tokens_of(row, seen, sums, head, "rare", "two rarest", two)
        if query != tokens[0]:
            tokens_of(row, seen, sums, head, "delimiter", "first", {tokens[0]})
        tokens_of(row, seen, sums, head, "delimiter", "punctuation", punctuation)
        same = {key for key in tokens if key != query and ids[key] == ids[query]}
        tokens_of(row, seen, sums, head, "same-token", "another occurrence", same)
        later = {key + 1 for key in tokens if key < query - 1 and ids[key] == ids[query] and key + 1 in tokens}
        tokens_of(row, seen, sums, head, "induction", "after the last time", later)
        for label, places in (
            ("start", [place for place in marks if place < tokens[0]]),
            ("end", [place for place in marks if place > tokens[0]]),
        ):
            if places:
                entry = sums[head, "delimiter", label]
                entry[0] += best(row, [*seen, *marks]) in places
                entry[1] += 1
                entry[2] += len(places) / (len(seen) + len(marks))


def words_of(
    sums: Sums, offsets: dict[Any, Counter[int]], head: str, weights: list[list[float]], tree: Tree, spans: Any,
    causal: bool,
) -> None:  # fmt: skip
    """Word by word: to a word the sum over its pieces, from it their mean."""
    words = pieces_of_words(tree.spans, spans)
    for arc in tree.arcs(*RELATIONS):
        verb, noun = RELATIONS[arc.relation]
        for query, key, label in (
            (arc.head, arc.dependent, f"{arc.relation} {verb}->{noun}"),
            (arc.dependent, arc.head, f"{arc.relation} {noun}->{verb}"),
        ):
            if causal and key > query:
                continue
            row = [
                sum(weights[q][k] for q in words[query] for k in words[word]) / len(words[query])
                for word in range(len(words))
            ]
            entry = sums[head, "syntactic", label]
            entry[0] += best(row, list(range(len(words)))) == key
            entry[1] += 1
            offsets[head, label][key - query] += 1


def slow(
    model: nn.Module, marks: Any, found: list[Tree], frequencies: Frequencies, common: int
) -> tuple[Sums, dict[Any, Counter[int]]]:
    sums: Sums = defaultdict(lambda: [0.0, 0.0, 0.0])
    offsets: dict[Any, Counter[int]] = defaultdict(Counter)
    for tree in found:
        encoded = pieces(marks, tree.text)
        assert encoded.ids == list(marks(tree.text)["input_ids"])
        inner = model.get_encoder() if model.config.is_encoder_decoder else model
        with torch.no_grad(), hc.tapped(model, "attention") as taps:
            inner(input_ids=torch.tensor([encoded.ids]))
        for site in hc.locate(model):
            for run, (number, head) in product(taps.calls(site.key), enumerate(site.head_names())):
                weights: list[list[float]] = run[0, number].double().tolist()
                causal = site.kind == "decoder"
                one_sentence(
                    sums, str(head), weights, encoded.ids, encoded.spans, tree.text,
                    causal=causal, frequencies=frequencies, common=common,
                )  # fmt: skip
                words_of(sums, offsets, str(head), weights, tree, encoded.spans, causal)
    return sums, offsets


def compare(found: Any, sums: Sums, offsets: dict[Any, Counter[int]], runs: int = 1) -> None:
    """runs: how often a site runs on a sentence. Trials are those of the text, hits the mean over the runs."""
    seen = 0
    for head in found.heads:
        for one in found[head]:
            hits, trials, chance = sums[str(head), one.role, one.label]
            assert one.trials == trials / runs, (head, one)
            assert one.value == pytest.approx(hits / trials, abs=1e-7), (head, one)
            if one.role == "syntactic":
                baseline = max(offsets[str(head), one.label].values()) / trials
            else:
                baseline = chance / trials
            assert one.baseline == pytest.approx(baseline, abs=1e-6), (head, one)
            assert one.low <= one.value <= one.high
            seen += 1
        if found[head]:
            hits, trials, special = sums[str(head), "confidence", ""]
            assert found.confidence[head].value == pytest.approx(hits / trials, abs=1e-5)
            assert found.left_out[head] == pytest.approx(special / trials, abs=1e-5)
    assert seen > 100
    known = {key for key, entry in sums.items() if entry[1] and key[1] != "confidence"}
    assert known == {(str(head), one.role, one.label) for head in found.heads for one in found[head]}


@pytest.mark.parametrize(("architecture", "runs"), [("bert", 1), ("llama", 1), ("gpt2", 1), ("albert", 3)])
def test_every_role_against_loops(architecture: str, runs: int) -> None:
    model, marks = zoo.build(architecture, "eager"), tokenizer()
    short = [tree for tree in trees(60) if len(marks(tree.text)["input_ids"]) <= 60][:25]
    frequencies = count_tokens([tree.text for tree in trees(60)], marks)
    found = hc.roles(model, short, tokenizer=marks, frequencies=frequencies, tokens=300)
    compare(found, *slow(model, marks, short, frequencies, common_of(len(frequencies))), runs)


def common_of(types: int) -> int:
    """The number of common types whose logarithm is the share of log(types) that log(500) is of log(32,000)."""
    share = math.log(500) / math.log(32_000)
    return min(range(1, types + 1), key=lambda number: abs(number - math.exp(share * math.log(types))))


def test_sentencepiece_and_an_encoder_decoder(tmp_path: Any) -> None:
    marks = laboratory.vocabulary(tmp_path / "v", size=120)
    model = laboratory.model(marks)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    chosen = list(trees(25))
    frequencies = count_tokens([tree.text for tree in trees(60)], marks)
    found = hc.roles(model, chosen, tokenizer=marks, frequencies=frequencies, common=15, tokens=300)
    compare(found, *slow(model, marks, chosen, frequencies, 15))
    assert not found["cross.0.0"]  # nothing to write was given


def test_cross_attention_against_loops(tmp_path: Any) -> None:
    """A query is the step that writes a token; diagonal within one token, monotone over all couples of steps."""
    marks = laboratory.vocabulary(tmp_path / "v", size=200)
    model = laboratory.model(marks)
    pairs = laboratory.parallel()["dev"].select(range(12))
    found = hc.roles(model, pairs["source"], targets=pairs["target"], tokenizer=marks, tokens=200)
    sums: Sums = defaultdict(lambda: [0.0, 0.0, 0.0])
    for source, target in zip(pairs["source"], pairs["target"], strict=True):
        ids, labels = marks(source)["input_ids"], marks(text_target=target)["input_ids"]
        read = [model.config.decoder_start_token_id, *labels[:-1]]
        with torch.no_grad(), hc.tapped(model, "attention") as taps:
            model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([read]))
        keys, steps = range(len(ids) - 1), range(len(labels) - 1)  # without the end on both sides
        for head in hc.locate(model).heads:
            if head.kind != "cross":
                continue
            weights: Tensor = taps[head.site][0, head.index].double()
            places = [best(weights[step].tolist(), list(keys)) for step in steps]
            for step in steps:
                last = max(1, len(steps) - 1)
                near = [key for key in keys if abs(key * last - step * (len(keys) - 1)) <= last]
                entry = sums[str(head), "alignment", "diagonal"]
                entry[0] += places[step] in near
                entry[1] += 1
                entry[2] += len(near) / len(keys)
                entry = sums[str(head), "confidence", ""]
                entry[0] += float(weights[step][: len(keys)].max())
                entry[1] += 1
            for one in steps:
                for two in range(one + 1, len(steps)):
                    entry = sums[str(head), "alignment", "monotone"]
                    if places[one] is not None and places[two] is not None:
                        entry[0] += (places[two] > places[one]) - (places[two] < places[one])
                    entry[1] += 1
    for head in found.heads:
        if head.kind == "cross":
            for one in found[head]:
                if one.role == "alignment":
                    hits, trials, chance = sums[str(head), one.role, one.label]
                    assert (one.value, one.trials) == (pytest.approx(hits / trials, abs=1e-6), trials)
                    assert one.baseline == pytest.approx(chance / trials, abs=1e-6)
            hits, trials, _ = sums[str(head), "confidence", ""]
            assert found.confidence[head].value == pytest.approx(hits / trials, abs=1e-5)


@pytest.mark.parametrize("size", [1, 4, 16])
def test_confidence_score_against_a_loop(size: int) -> None:
    """Mean over tokens of the largest weight on a token; batches and padding make no difference."""
    model, marks = zoo.build("bert", "eager"), tokenizer()
    texts = [tree.text for tree in trees(60) if len(marks(tree.text)["input_ids"]) <= 60][:16]
    task = hc.task("classification", texts=texts, labels=[0, 1] * 8, tokenizer=marks, batch_size=size)
    found = hc.score("confidence", model, task)
    for head in found.heads:
        total, special, count = 0.0, 0.0, 0
        for text in texts:
            ids = marks(text)["input_ids"]
            with torch.no_grad(), hc.tapped(model, "attention") as taps:
                model(input_ids=torch.tensor([ids]))
            weights = taps[head.site][0, head.index]
            for query in range(1, len(ids) - 1):
                total += float(weights[query, 1:-1].max())
                special += float(weights[query, 0] + weights[query, -1])
                count += 1
        assert found[head] == pytest.approx(total / count, abs=1e-5)
        assert found.left_out[head] == pytest.approx(special / count, abs=1e-5)
        assert found.low[head] <= found[head] <= found.high[head]


def test_confidence_of_all_three_kinds_agrees_with_roles(tmp_path: Any) -> None:
    marks = laboratory.vocabulary(tmp_path / "v")
    model = laboratory.model(marks)
    pairs = laboratory.parallel()["dev"]
    task = hc.task("translation", source=pairs["source"], target=pairs["target"], tokenizer=marks)
    found = hc.score("confidence", model, task)
    roles = hc.roles(model, pairs["source"], targets=pairs["target"], tokenizer=marks)
    for head in found.heads:
        assert found[head] == pytest.approx(roles.confidence[head].value, abs=1e-5)
        assert found.left_out[head] == pytest.approx(roles.left_out[head], abs=1e-5)
