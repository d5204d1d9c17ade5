"""The compensation study: what its losses are means of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import zoo
from headcount.statistics import Interval, bootstrap_sums, percentile_interval
from headcount.studies.compensation import excess_loss, study_compensation
from headcount.tasks.language_modelling import LanguageModelling
from headcount.tasks.masked_language_modelling import MaskedLanguageModelling
from tokens import sentences, word_tokenizer


def test_texts_without_predictions_are_no_examples() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=16, n_layer=2, n_head=2)).eval()
    chosen_on = LanguageModelling(texts=sentences(20, seed=2), tokenizer=word_tokenizer())
    texts = sentences(20, seed=1)
    alone, among = (
        study_compensation(
            model, chosen_on, LanguageModelling(texts=measured, tokenizer=word_tokenizer()), greedy=None, step=0.5
        ).parts
        for measured in (texts, [*texts, *["w1"] * 20])
    )
    assert alone.full == among.full
    for one, other in zip(alone.compensations["none"], among.compensations["none"], strict=True):
        assert one == replace(other, seconds=one.seconds)


@pytest.mark.parametrize(("metric", "points"), [("accuracy", 0.02), ("loss", 2.0)])
def test_ways_are_compared_where_two_points_are_lost(metric: str, points: float) -> None:
    """Of a metric between 0 and 1, such as the accuracy of tokens, a point is .01."""
    tokenizer = word_tokenizer(mask="w98", framed=True)
    chosen_on, measured = (
        MaskedLanguageModelling(texts=sentences(8, seed=seed), tokenizer=tokenizer, metric=metric) for seed in (2, 1)
    )
    record = study_compensation(zoo.build("roberta"), chosen_on, measured, greedy=None, step=0.5)
    assert record.signature.arguments["points"] == points


def test_the_excess_loss_of_few_examples_may_have_a_long_tail() -> None:
    """Of 30 log-normal losses, 12% of the percentile intervals leave out the mean, nearly all of them below it."""
    losses = np.random.default_rng(0).lognormal(size=(200, 30))
    plain, corrected = (np.array([of(row) for row in losses]) for of in (_percentiles, _excess))
    assert (corrected[:, 2] < np.exp(0.5)).mean() < 0.75 * (plain[:, 2] < np.exp(0.5)).mean()


def _percentiles(losses: np.ndarray) -> Interval:
    (drawn,) = bootstrap_sums(losses, resamples=1000)
    return Interval(losses.mean(), *map(float, percentile_interval(drawn / len(losses), units=len(losses))))


def _excess(losses: np.ndarray) -> Interval:
    return excess_loss(losses + 1, np.ones_like(losses))
