"""Ablation: where the best head of a layer is chosen, and where it is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
import zoo
from headcount.errors import UsageError
from headcount.report.figure import write_all
from headcount.studies.ablation import ablate
from headcount.studies.replacement import replacements
from headcount.studies.scoring import scoring
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


@pytest.mark.filterwarnings("ignore:.*did not run:UserWarning")
def test_heads_that_do_not_run_are_in_no_record(tmp_path: Path) -> None:
    """Their effects are unknown: they counted as harmless and as last in a ranking, and no figure could be drawn."""
    model = zoo.idle_cross()
    first, second = (
        hc.task("language-modelling", texts=sentences(6, seed=seed), tokenizer=word_tokenizer()) for seed in (1, 2)
    )
    record = ablate(model, first, other=second)
    parts = record.parts
    decoder = [f"decoder.{layer}.{head}" for layer in (0, 1) for head in range(4)]
    assert parts.other is not None
    assert list(parts.one_out) == list(parts.other.one_out) == decoder
    for alone in (parts.all_but_one, parts.all_but_one_chosen_elsewhere):
        assert list(alone or ()) == ["decoder.0", "decoder.1"]
    assert parts.summary.num_heads == 8
    assert parts.other.pearson.r == parts.other.pearson.r
    assert write_all(record, tmp_path, ("png",))
    scored = scoring(model, first, method="gradient").parts
    assert list(scored.scores) == list(scored.ranks) == decoder
    replaced = replacements(model, first).parts
    assert all(list(effects) == decoder for effects in replaced.effects.values())
    assert all(correlation.r == correlation.r for correlation in replaced.rank_correlations.values())
