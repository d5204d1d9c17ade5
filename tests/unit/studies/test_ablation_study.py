"""Ablation: where the best head of a layer is chosen, and where it is measured."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
import zoo
from claimed import model as studied_model
from headcount.claims.claim import ordered
from headcount.claims.ledger import decide
from headcount.errors import UsageError
from headcount.report.figure import draw
from headcount.studies.ablation import ablate
from headcount.studies.replacement import replacements
from headcount.tasks.task import Task
from tokens import sentences, word_tokenizer


def labelled(*seeds: int) -> Task:
    texts = [text for seed in seeds for text in sentences(30, seed=seed)]
    labels = [len(text) % 2 for text in texts]
    return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer())


def classifier() -> BertForSequenceClassification:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 32}
    return BertForSequenceClassification(BertConfig(vocab_size=99, initializer_range=0.5, **size)).eval()


def test_the_same_examples_twice_are_no_second_data_set() -> None:
    """Effects would agree perfectly, and claim M3 hold, whatever the heads do."""
    with pytest.raises(UsageError, match="has the texts of the first"):
        ablate(classifier(), labelled(1), other=labelled(1))
    with pytest.raises(UsageError, match="has the texts of the first"):  # half of it: M3 held in 57% of heads by chance
        ablate(classifier(), labelled(1, 2), other=labelled(1, 3))
    assert not ablate(classifier(), labelled(1), choose_on=labelled(1)).parts.alone_held_out


def test_best_heads_are_chosen_on_other_examples() -> None:
    model = classifier()
    dev, test, second = labelled(1), labelled(2), labelled(3)
    on_dev, on_test = ablate(model, dev).parts, ablate(model, test).parts
    apart = ablate(model, test, choose_on=dev, other=second).parts
    transferred = ablate(model, dev, other=second).parts.all_but_one_chosen_elsewhere
    heads = {site: best.head for site, best in apart.all_but_one.items()}
    assert heads == {site: best.head for site, best in on_dev.all_but_one.items()}
    assert heads != {site: best.head for site, best in on_test.all_but_one.items()}, "or there is nothing to see"
    for site, best in apart.all_but_one.items():
        assert best.value <= on_test.all_but_one[site].value, "no head is better than the best one there"
        assert apart.all_but_one_chosen_elsewhere[site] == transferred[site]
    assert (apart.alone_held_out, on_test.alone_held_out) == (True, False)


def test_heads_that_were_chosen_on_the_second_data_were_not_chosen_elsewhere() -> None:
    """`study michel2019 --other-split dev` chooses on dev: the page had the choice as a measurement on second data."""
    dev, test = labelled(1), labelled(2)
    parts = ablate(classifier(), test, choose_on=dev, other=dev).parts
    assert parts.alone_held_out
    assert parts.other is not None
    assert parts.all_but_one_chosen_elsewhere is None


def test_heads_that_do_not_run_are_no_harmless_heads() -> None:
    """Cross-attention of a decoder without an encoder: M1 had "16 of 16 heads", M2 4 of 4 layers, and M3 no number."""
    tokenizer, texts = word_tokenizer(), sentences(60)
    first, second, choice = (
        hc.task("language-modelling", texts=texts[start : start + 20], tokenizer=tokenizer) for start in (0, 20, 40)
    )
    with pytest.warns(UserWarning, match="did not run"):
        record = ablate(zoo.idle_cross(), first, other=second, choose_on=choice)
    parts = record.parts
    assert {head.split(".")[0] for head in parts.one_out} == {"decoder"}
    assert (parts.summary.num_heads, list(parts.all_but_one)) == (8, ["decoder.0", "decoder.1"])
    details = {claim.number: decide(claim, [studied_model(record)]) for claim in ordered(["michel2019"])}
    assert "of 8 heads" in details["M1"].detail
    assert "of 2 layers" in details["M2"].detail
    assert details["M3"].models == 1


@pytest.mark.filterwarnings("ignore:.*did not run")
def test_replacements_of_heads_that_do_not_run_are_in_no_record() -> None:
    task = hc.task("language-modelling", texts=sentences(6), tokenizer=word_tokenizer())
    parts = replacements(zoo.idle_cross(), task).parts
    decoder = [f"decoder.{layer}.{head}" for layer in (0, 1) for head in range(4)]
    assert all(list(effects) == decoder for effects in parts.effects.values())
    assert not any(np.isnan(correlation.r) for correlation in parts.rank_correlations.values())


@pytest.mark.filterwarnings("ignore:.*did not run on the data")
@pytest.mark.parametrize("early", [False, True])
def test_heads_that_do_not_run_are_left_out(early: bool) -> None:
    """As the cross-attention of a decoder without an encoder, or the images of a model that is given texts."""
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=99, initializer_range=0.5, is_decoder=True, add_cross_attention=True, **size)
    model = BertForSequenceClassification(config).eval()
    record = ablate(model, labelled(1), other=labelled(2), early=early)
    heads = [f"decoder.{layer}.{index}" for layer in (0, 1) for index in (0, 1)]
    assert [*record.parts.one_out] == heads
    assert record.parts.summary.num_heads == 4
    assert record.parts.other is not None
    assert [*record.parts.other.one_out] == heads
    assert -1 <= record.parts.other.pearson.r <= 1
    assert [*(record.parts.all_but_one or ())] == ["decoder.0", "decoder.1"]
    for figure in ("ablation-histogram", "ablation-map", "transfer"):
        draw(figure, [record])
