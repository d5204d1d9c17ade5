"""Heads replaced by their roles: a head that is its role loses nothing, one that only seems to be it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

import headcount as hc
import zoo
from headcount.corpora.sentences import Sentences
from headcount.errors import UsageError
from headcount.head_roles.evidence import HalvedEvidence
from headcount.head_roles.measure import Roles
from headcount.metrics import LOSS
from headcount.studies.compensation import ratio
from headcount.studies.playing import comparison, play, task_of
from headcount.studies.roles import look
from planted import tokenizer

WIDTH = 16  # of tokens, of positions and of a head


def reader() -> nn.Module:
    """One layer, two heads: head 0 looks at the token before, by its position; head 1 looks at tokens by content."""
    torch.manual_seed(0)
    size = {"n_embd": 2 * WIDTH, "n_layer": 1, "n_head": 2, "n_positions": WIDTH, "vocab_size": 40}
    model = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=39, eos_token_id=39, tie_word_embeddings=False)).eval()
    with torch.no_grad():
        model.transformer.wte.weight[:, :WIDTH].normal_()
        model.transformer.wte.weight[:, WIDTH:].zero_()
        model.transformer.wpe.weight[:, :WIDTH].zero_()
        model.transformer.wpe.weight[:, WIDTH:] = 3 * torch.eye(WIDTH)
        attention = model.transformer.h[0].attn
        attention.c_attn.weight.zero_()  # [in, q0 q1 k0 k1 v0 v1]
        query, key, value = attention.c_attn.weight.split(2 * WIDTH, dim=1)
        query[WIDTH:, :WIDTH] = 100 * torch.eye(WIDTH).roll(-1, dims=1)  # position i asks for i - 1
        query[WIDTH, :WIDTH] = 0
        key[WIDTH:, :WIDTH] = torch.eye(WIDTH)
        query[:WIDTH, WIDTH:].normal_()
        key[:WIDTH, WIDTH:].normal_()
        value[:WIDTH, :WIDTH] = value[:WIDTH, WIDTH:] = torch.eye(WIDTH)
        attention.c_proj.weight.normal_()
    return model


def own_answers(model: nn.Module) -> Any:
    """A task on which the model is right: whatever changes it makes it worse."""
    ids = torch.randint(0, 39, (40, 10), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        answers = model(ids, use_cache=False).logits.argmax(-1)

    def nll(live: nn.Module, batch: Any) -> Tensor:
        logits = live(input_ids=batch["input_ids"], use_cache=False).logits
        return nn.functional.cross_entropy(logits.transpose(1, 2), batch["labels"], reduction="none").sum(-1)

    return hc.task.of([{"input_ids": ids, "labels": answers}], nll=nll)


def test_only_the_head_that_is_its_role_can_be_replaced_by_it() -> None:
    model = reader()
    said = HalvedEvidence("positional", "-1", 1.0, 0.2, 0.9, 0.99, 1.0, 400, True)
    nothing = HalvedEvidence("delimiter", "end", 1.0, 0.2, 0.5, 0.99, 1.0, 400, True)
    found = Roles([(hc.Head.parse(f"decoder.0.{index}"), (nothing, said)) for index in range(2)], "object")
    record = play(model, own_answers(model), found, Sentences(["a"]), None)
    planted, other = record.by_head["decoder.0.0"], record.by_head["decoder.0.1"]
    assert (planted.role, planted.label) == ("positional", "-1")
    assert planted.off.low > 0.1, "the head is worth something"
    assert abs(planted.played.difference) < 1e-3
    assert planted.share_kept.low > 0.8
    assert other.off.low > 0.1
    assert other.alone.low > 0.1
    assert other.share_kept.high < 0.8
    assert record.value == pytest.approx(own_answers(model).quality(model).value)


def test_shares_are_those_of_sums_and_none_where_the_head_is_worth_nothing() -> None:
    random = np.random.default_rng(0)
    base = np.stack([random.normal(5, 1, 200), np.full(200, 2.0)], axis=1)
    off, alone = base + np.array([1.0, 0.0]), base + np.array([0.25, 0.0])
    without, replaced, _, share_kept = comparison(LOSS, base, off, base, alone)
    assert share_kept == pytest.approx((0.75, 0.75, 0.75))
    assert without.difference == pytest.approx(0.5)
    assert replaced.difference == 0.0
    noise = base + np.stack([random.normal(0, 1, 200), np.zeros(200)], axis=1)
    assert comparison(LOSS, base, noise, base, alone)[-1] is None
    assert comparison(LOSS, base, base - np.array([1.0, 0.0]), base, alone)[-1] is None, "better without the head"


def test_a_loss_is_needed() -> None:
    with pytest.raises(UsageError, match="translation model with parallel text, or a language model"):
        task_of(zoo.build("bert"), Sentences(["a b"]), tokenizer())
    assert task_of(zoo.build("gpt2"), Sentences(["a b"]), tokenizer()).name == "language-modelling"


def test_shares_and_ratios_of_a_few_large_losses() -> None:
    """Of 30 log-normal effects, of which the role gives half, 16% of both intervals left out the truth."""
    random, ones, missed = np.random.default_rng(7), np.ones(30), np.zeros(2)
    for _ in range(200):
        effect, noise = random.lognormal(size=(2, 30))
        lost = effect * noise / np.exp(0.5) / 2
        base, off, alone = (np.stack([3 + added, ones], axis=1) for added in (0 * ones, effect, lost))
        _, _, _, kept = comparison(LOSS, base, off, alone, alone)
        assert kept is not None
        missed += [not interval.low <= 0.5 <= interval.high for interval in (kept, ratio(lost, effect))]
    assert (missed / 200 < 0.12).all()


def test_heads_are_replaced_on_the_sentences_that_roles_were_measured_on() -> None:
    """A text beyond the positions is skipped by roles; it was refused after them, and they were lost."""
    model, texts = reader(), [" ".join(["a"] * length) for length in (5, WIDTH + 1, 7)]
    tokens = tokenizer()
    assert len(tokens(texts[1])["input_ids"]) > WIDTH
    parts = look(model, Sentences(texts), tokens, play_on=task_of(model, Sentences(texts), tokens)).parts
    assert (parts.sentences, len(task_of(model, Sentences(texts), tokens))) == (2, 2)
    assert parts.played is not None
