"""Arguments of the wrong type: refused with what is allowed, not with an error of Python or torch."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from headcount.errors import CorpusError, UsageError
from tokens import word_tokenizer


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    return BertForSequenceClassification(BertConfig(vocab_size=99, **size)).eval()


@pytest.fixture(scope="module")
def task() -> Any:
    return hc.task("classification", texts=["w5 w6", "w7 w8"], labels=[0, 1], tokenizer=word_tokenizer())


def test_they_are_refused_with_what_is_allowed(model: Any, task: Any) -> None:
    nothing: Any = None
    mask: Any = hc.locate(model).mask()
    heads: Any = ["encoder.0.0"]

    def roles(**options: Any) -> Any:
        return hc.roles(model, ["w5 w6"], tokenizer=word_tokenizer(), **options)

    wrong = [
        (lambda: hc.load(nothing), "source must be the folder or hub id of a model, such as 'gpt2'; got NoneType"),
        (lambda: hc.load(model), "got BertForSequenceClassification"),
        (lambda: hc.save(model, nothing), "folder must be the path of a folder; got NoneType"),
        (lambda: hc.score("gradient", task, model), "model must be a PyTorch model: hc.score(name, model, task)"),
        (lambda: hc.score(model, task), "The name of a score must be text; got Bert"),
        (lambda: hc.score("gradient", model, heads), "task must be a task, from hc.task(...)"),
        (lambda: hc.roles(model, ["w5 w6"], tokenizer=nothing), "tokenizer must be the tokenizer of the model"),
        (lambda: hc.roles(model, nothing, tokenizer=word_tokenizer()), "corpus must be a list of sentences"),
        (lambda: hc.played(model, heads).__enter__(), "parts must be a role for each head"),
        (lambda: hc.played(model, {"encoder.0.0": nothing}).__enter__(), "The role of encoder.0.0 must be text"),
        (lambda: hc.fold_gates(model, mask), "gates must be the gates of hc.gated"),
        (lambda: hc.select(nothing, hc.Budget(heads=1)), "scores must be scores of heads"),
        (lambda: hc.verify(model, nothing, mask), "small must be the pruned model"),
        (lambda: hc.mean_outputs(model, nothing), "batches must be a list of batches"),
        (lambda: hc.mean_outputs(model, {"input_ids": nothing}), "batches must be a list of batches, such as"),
        (lambda: hc.mean_outputs(model, ["w5 w6"]), "A batch must be a dict of the arguments of the model"),
        (lambda: hc.head_mask(model, mask).__enter__(), "A head mask is a tensor; got HeadGrid"),
        (lambda: hc.head_mask(model, [nothing] * 2).__enter__(), "A head mask is a tensor; got list"),
        (lambda: hc.tapped(model, nothing).__enter__(), "what must be one or several of outputs, attention"),
        (lambda: hc.locate(model)[hc.Head("encoder", 0, 1)], "A site must be named by kind and layer"),  # type: ignore[call-overload]
        (lambda: hc.locate(model).mask(off=3), "Heads must be named, such as 'encoder.0.3'"),  # type: ignore[arg-type]
        (lambda: hc.HeadGrid(nothing), "values must be a mapping from heads to values"),
        (lambda: hc.HeadGrid([1, 2]), "A grid is made of a mapping from heads to values"),  # type: ignore[list-item]
        (lambda: hc.score("confidence", model, task, specials="[CLS]"), "specials must be ids of tokens"),
        (lambda: hc.score("confidence", model, task, resamples=0), "resamples must be at least 10"),
        (lambda: roles(batch_size=8), "Unknown option 'batch_size'"),
        (lambda: roles(thresholds={"positional": "90%"}), "must be a share such as 0.9; got '90%'"),
        (lambda: roles(thresholds=0.9), "thresholds must be a share for each role"),
        (lambda: roles(furthest="3"), "furthest must be a whole number of tokens; got str"),
        (lambda: roles(common="all"), "common must be a whole number of tokens, or None; got str"),
        (lambda: roles(excess=nothing), "excess must be a number such as 0.1"),
        (lambda: roles(frequencies={5: 3}), "frequencies must be token frequencies, from headcount.corpora"),
        (lambda: roles(resamples=-1), "resamples must be at least 10; got -1"),
        (lambda: hc.played(model, {}, frequencies="counts.tsv").__enter__(), "frequencies must be token frequencies"),  # type: ignore[arg-type]
        (lambda: hc.played(model, {}, trees="dev.conllu").__enter__(), "trees must be a list of trees"),
        (lambda: hc.Budget.parse(nothing), "A budget to parse must be text such as '10' or '40%'; got NoneType"),
    ]
    for call, message in wrong:
        with pytest.raises(UsageError, match=re.escape(message)):
            call()


def test_tables_and_mappings_are_no_lists_of_texts(model: Any) -> None:
    """Their names were read instead: the perplexity was that of the text "text"."""
    texts = ["w5 w6 w7", "w7 w8 w9"]
    for table in (pd.DataFrame({"text": texts}), {"text": texts}):
        for read in (
            lambda wrong: hc.task("language-modelling", texts=wrong, tokenizer=word_tokenizer()),
            lambda wrong: hc.task("translation", source=texts, target=wrong, tokenizer=word_tokenizer()),
            lambda wrong: hc.roles(model, wrong, tokenizer=word_tokenizer()),
            lambda wrong: hc.roles(model, texts, targets=wrong, tokenizer=word_tokenizer()),
        ):
            with pytest.raises(UsageError, match=r"whose names would be read instead.*data\['text'\]"):
                read(table)
    assert len(hc.task("language-modelling", texts=pd.Series(texts), tokenizer=word_tokenizer())) == 2


def test_a_mask_is_no_list_of_heads(model: Any) -> None:
    """All of its heads were taken, whatever their values."""
    sites = hc.locate(model)
    mask = sites.mask(off="encoder.0.*")
    with pytest.raises(UsageError, match=r"grid\.kept"):
        sites.mask(keep=mask)
    assert sites.mask(keep=mask.kept) == mask


def test_translations_are_texts(model: Any) -> None:
    missing: Any = [None]
    with pytest.raises(CorpusError, match="Translation 0 is NoneType, expected text"):
        hc.roles(model, ["w5 w6"], targets=missing, tokenizer=word_tokenizer())
