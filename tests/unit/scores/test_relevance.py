"""The relevance score against a loop over single predictions, on planted truths, and with wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import headcount as hc
import laboratory
import zoo
from behaviour import hooks, identical, weights
from headcount.errors import ModelError, UnknownName, UsageError
from headcount.probes.relevance.rules.rule import members
from headcount.probes.relevance.trace import traced
from headcount.scores.relevance import _mean_and_spread, _moments, chunks
from headcount.sites.running import evaluating
from headcount.statistics import mean_ends
from headcount.studies.rules import compare_rules
from tokens import sentences, word_tokenizer


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    tokenizer = laboratory.vocabulary(tmp_path_factory.mktemp("vocabulary"))
    model = laboratory.model(tokenizer).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.1, 0.1)
    return model, tokenizer


def pairs(tokenizer: Any, count: int = 5, **options: Any) -> Any:
    rows = laboratory.parallel()["dev"].select(range(count))
    return hc.task(
        "translation", source=list(rows["source"]), target=list(rows["target"]), tokenizer=tokenizer, **options
    )


def labelled(batch_size: int, count: int = 7) -> Any:
    texts, labels = sentences(count), [i % 2 for i in range(count)]
    return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer(), batch_size=batch_size)


def texts(batch_size: int, count: int = 6, **options: Any) -> Any:
    return hc.task(
        "language-modelling", texts=sentences(count, **options), tokenizer=word_tokenizer(), batch_size=batch_size
    )


def loop(model: Any, task: Any, **options: Any) -> list[np.ndarray]:
    """One example alone, without padding: [predictions, heads] normalised within each layer."""
    found = []
    for batch in task.batches():
        predicted_BT = task.predicted(batch)
        for row in range(len(predicted_BT)):
            single = {name: value[row : row + 1] for name, value in batch.items()}
            if "attention_mask" in single:
                real = single["attention_mask"][0].bool()
                same = {name for name, value in single.items() if value.shape == single["attention_mask"].shape}
                single = {
                    name: value[:, real] if name in same - {"labels"} else value for name, value in single.items()
                }
            if single["labels"].dim() == 2:
                single["labels"] = single["labels"][:, single["labels"][0] != -100]
            shares = []
            with evaluating(model, gradients=True):
                for place in task.predicted(single)[0].nonzero()[:, 0].tolist():
                    with traced(model, **options) as trace:
                        logits = task.logits(model, single)
                    logit = trace.predictions(logits, place, logits[:, place].argmax(-1))
                    heads = trace.relevance(logit, torch.ones(1)).heads
                    shares.append(
                        np.concatenate([(heads[s.key] / heads[s.key].abs().sum())[0].numpy() for s in hc.locate(model)])
                    )
            found.append(np.array(shares))
    return found


def expected(examples: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean over all predictions, and its standard error by the formula for a ratio of sums."""
    counts = np.array([len(shares) for shares in examples])
    mean = np.concatenate(examples).mean(0)
    rest = np.array([shares.sum(0) - mean * len(shares) for shares in examples])
    return mean, np.sqrt(len(counts) / (len(counts) - 1) * (rest**2).sum(0)) / counts.sum()


def ends(examples: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the interval, which reach further into a long tail."""
    counts, (mean, error) = np.array([len(shares) for shares in examples]), expected(examples)
    rest = np.array([shares.sum(0) - mean * len(shares) for shares in examples])
    varying = 6 * (counts @ rest) * (rest**2).sum(0) / counts.sum()
    return mean_ends(mean, error, ((rest**3).sum(0) - varying) / counts.sum() ** 3, len(counts))


@pytest.mark.parametrize(
    "rule",
    [name if name in ("ding", "zplus2019") else pytest.param(name, marks=pytest.mark.slow) for name in members.names()],
)
def test_translations_against_single_predictions(translation: tuple[Any, Any], rule: str) -> None:
    model, tokenizer = translation
    task = pairs(tokenizer, 2)
    single = loop(model, task, rule=rule)
    (mean, _), (_, high) = expected(single), ends(single)
    for size, chunk in ((4096, 1024), (4096, 15))[: 2 if rule == "ding" else 1]:
        found = hc.score(
            "relevance", model, pairs(tokenizer, 2, tokens=size), rule=rule, target="reference", chunk=chunk
        )
        np.testing.assert_allclose(found.numbers(), mean, rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.high.numbers(), high, rtol=0, atol=1e-6)
        assert found.details["examples"] == 2
        assert found.details["predictions"] == sum(len(ids) for ids in task.target_ids)


def test_own_output_is_what_the_model_writes(translation: tuple[Any, Any]) -> None:
    model, tokenizer = translation
    task = pairs(tokenizer, 2)
    written = task.written(model)
    own = hc.score("relevance", model, task)
    assert own.details["predictions"] == sum(map(len, written))
    mean, _ = expected(loop(model, task.answered(model)))
    np.testing.assert_allclose(own.numbers(), mean, rtol=0, atol=1e-9)
    reference = hc.score("relevance", model, task, target="reference")
    assert np.abs(own.numbers() - reference.numbers()).max() > 1e-3
    assert own.signature.data == reference.signature.data
    assert own.signature.arguments == {"score": "relevance", "rule": "ding", "bias": None, "target": "own"}


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta"])
def test_classes_against_single_predictions(architecture: str) -> None:
    model = classifier(architecture)
    single = loop(model, labelled(1))
    (mean, _), (low, _) = expected(single), ends(single)
    for batch_size, chunk in ((7, 1024), (3, 1024), (7, 20)):
        found = hc.score("relevance", model, labelled(batch_size), chunk=chunk)
        np.testing.assert_allclose(found.numbers(), mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.low.numbers(), low, rtol=0, atol=1e-8)


def classifier(architecture: str) -> Any:
    if architecture != "roberta":
        return zoo.build(architecture, dtype=torch.float64)
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    config = transformers.RobertaConfig(vocab_size=99, max_position_embeddings=32, pad_token_id=0, **sizes)
    return transformers.RobertaForSequenceClassification(config).double().eval()


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_next_tokens_against_single_predictions(architecture: str) -> None:
    model = zoo.build(architecture, dtype=torch.float64)
    loose = 1e-5 if architecture == "llama" else 1e-9  # Llama computes its norms in float32, whatever its weights are
    mean, _ = expected(loop(model, texts(1)))
    for batch_size, chunk in ((6, 1024), (2, 1024), (6, 10)):
        found = hc.score("relevance", model, texts(batch_size), chunk=chunk)
        np.testing.assert_allclose(found.numbers(), mean, rtol=0, atol=loose)
        assert found.details["predictions"] == sum(len(text.split()) - 1 for text in sentences(6))


def test_leads_are_over_the_highest_other_head_on_the_same_examples() -> None:
    model = zoo.build("llama", dtype=torch.float64)
    examples = loop(model, texts(1))
    leads = hc.score("relevance", model, texts(4)).details["leads"]
    heads = hc.locate(model).heads
    assert list(leads) == [str(head) for head in heads]
    mean, _ = expected(examples)
    for column, head in enumerate(heads):
        others = [place for place, other in enumerate(heads) if other.site == head.site and other != head]
        rival = max(others, key=lambda place: mean[place])
        value, error = expected([shares[:, [column]] - shares[:, [rival]] for shares in examples])
        lead = leads[str(head)]
        half = stats.t.ppf(0.975, len(examples) - 1) * error[0]
        assert lead == pytest.approx((value[0], value[0] - half, value[0] + half), abs=1e-9)


@pytest.mark.parametrize("rule", members.names())
def test_planted_heads(rule: str) -> None:
    """A head whose output goes nowhere has exactly nothing; one that alone makes the answer has nearly all."""
    model = zoo.build("gpt2")
    first, last = (model.transformer.h[layer].attn.c_proj.weight for layer in (0, 2))  # [in, out]
    with torch.no_grad():
        first[32:48] = 0
        last[16:32] *= 1000
    found = hc.score("relevance", model, texts(4), rule=rule)
    if rule in ("ding", "ding-product", "attnlrp"):
        assert found["decoder.0.2"] == 0.0
    elif rule == "zplus2019":  # every weight counts eps at least; alphabeta2021 spreads biases over all inputs
        assert abs(found["decoder.0.2"]) < 1e-4
    others = [found[f"decoder.2.{head}"] for head in (0, 2, 3)]
    assert found["decoder.2.1"] > 0.9 > 0.1 > max(map(abs, others))


def test_shares_of_a_layer_are_normalised(bert: nn.Module) -> None:
    with torch.no_grad():
        bert.bert.encoder.layer[1].attention.output.dense.weight.zero_()
    one = hc.score("relevance", bert, labelled(1, count=1))
    sizes = [np.abs(one.layer("encoder", layer).astype(float)).sum() for layer in range(3)]
    assert sizes == [pytest.approx(1), 0.0, pytest.approx(1)]


def test_intervals_reach_into_a_long_tail() -> None:
    """Of 32 texts of unequal length with shares of a few predictions, 11% of t-intervals left out the mean."""
    random, missed = np.random.default_rng(0), 0.0
    truth = np.array([0.4, 0.2, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02])
    for _ in range(300):
        counts_B = np.ceil(12 * random.lognormal(0, 0.5, 32))
        sums = _moments(random.dirichlet(3 * truth, 32) * counts_B[:, None], counts_B)
        low, high = mean_ends(*_mean_and_spread(sums), 32)
        missed += ((truth < low) | (truth > high)).mean() / 300
    assert 0.02 < missed < 0.07


def test_intervals_shrink_with_data(bert: nn.Module) -> None:
    few, many = (hc.score("relevance", bert, labelled(16, count)) for count in (8, 64))
    widths = [np.mean(found.high.numbers() - found.low.numbers()) for found in (few, many)]
    assert widths[1] < 0.7 * widths[0]


def test_details_say_what_became_of_relevance(bert: nn.Module, llama: nn.Module) -> None:
    absorbed = hc.score("relevance", bert, labelled(4)).details
    assert list(absorbed["cuts"]) == ["encoder.2", "encoder.1", "encoder.0", "input"]
    assert absorbed["absorbed"] == absorbed["cuts"]["input"]["absorbed"] > 0.01
    assert hc.score("relevance", llama, texts(4)).details["absorbed"] == 0
    handed_on = hc.score("relevance", bert, labelled(4), bias="redistribute").details
    assert handed_on["cuts"]["encoder.2"]["kept"] == pytest.approx(1, abs=1e-3)


def test_unfinished_work_is_gone_on_with(bert: nn.Module, tmp_path: Path) -> None:
    whole = hc.score("relevance", bert, labelled(2))
    kept = hc.score("relevance", bert, labelled(2), folder=tmp_path / "work")
    assert kept == whole
    assert not list((tmp_path / "work").glob("*/*"))


def test_pruned_models(bert: nn.Module) -> None:
    small = hc.remove(bert, hc.locate(bert).mask(off=["encoder.0.1", "encoder.1.*"]))
    masked_out = hc.score("relevance", small, labelled(4))
    assert masked_out.heads == hc.locate(small).heads
    check = masked_out.details["cuts"]
    assert max(cut["error"] for cut in check.values()) < 1e-5


def test_chunks_hold_every_row_once_and_cut_off_padding() -> None:
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 0, 0]])
    batch = {"input_ids": torch.arange(12).view(4, 3), "attention_mask": mask, "labels": torch.arange(4), "name": "x"}
    parts = list(chunks(batch, batch["attention_mask"].bool(), 6))
    assert [part["labels"].tolist() for part in parts] == [[0, 2], [1, 3]]
    assert [part["input_ids"].tolist() for part in parts] == [[[0, 1, 2], [6, 7, 8]], [[3], [9]]]
    assert all(part["name"] == "x" for part in parts)


def test_the_model_is_left_as_it_was(bert: nn.Module) -> None:
    bert.train()
    before = weights(bert)
    for rule in members.names():
        hc.score("relevance", bert, labelled(4), rule=rule)
    assert identical(weights(bert), before)
    assert all(parameter.requires_grad and parameter.grad is None for parameter in bert.parameters())
    assert bert.training
    assert hooks(bert) == 0


def test_rules_are_compared(bert: nn.Module, llama: nn.Module) -> None:
    record = compare_rules(bert, labelled(4), name="tiny", variants=("ding", "zplus2019"))
    (agreement,) = record.parts.agreements
    assert str(agreement) == "ding / zplus2019"
    both = [np.array(list(record.parts.by_rule[rule].values())) for rule in ("ding", "zplus2019")]
    ranks = [np.argsort(np.argsort(values)) for values in both]
    assert agreement.spearman["encoder"].r == agreement.spearman["all"].r == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert (
        "Jacobian" in compare_rules(llama, texts(4), variants=("ding", "alphabeta2021")).parts.refused["alphabeta2021"]
    )


def test_wrong_input(bert: nn.Module, llama: nn.Module) -> None:
    with pytest.raises(UsageError, match="needs a task"):
        hc.score("relevance", bert)
    with pytest.raises(UsageError, match="defines no predictions"):
        hc.score("relevance", bert, hc.task.of([{}], nll=lambda *_: torch.zeros(1)))
    with pytest.raises(UnknownName, match="Did you mean 'reference'"):
        hc.score("relevance", bert, labelled(4), target="refrence")
    with pytest.raises(UsageError, match="at least 1; got 0"):
        hc.score("relevance", bert, labelled(4), chunk=0)
    with pytest.raises(UsageError, match="nothing to predict"):
        hc.score("relevance", llama, texts(2, shortest=1, longest=1))
    with pytest.raises(UsageError, match="no option 'rules'"):
        hc.score("relevance", bert, labelled(4), rules="ding")
    with torch.no_grad():
        bert.classifier.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="NaN or infinite"):
        hc.score("relevance", bert, labelled(4))
