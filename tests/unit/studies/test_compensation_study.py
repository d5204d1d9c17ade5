"""The compensation study: what its losses are means of."""

from __future__ import annotations

from dataclasses import replace

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from headcount.studies.compensation import study_compensation
from headcount.tasks.language_modelling import LanguageModelling
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
