"""A teacher in the loss: the formula, word for word; what the teacher knows is kept where the labels lie."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
import laboratory
import zoo
from behaviour import weights
from headcount.errors import UsageError
from headcount.tasks.classification import Classification
from headcount.tasks.distilled import distilled
from headcount.tasks.translation import Translation
from tokens import sentences, word_tokenizer

SHARE = 0.3


def classification() -> tuple[Any, nn.Module, nn.Module]:
    texts = sentences(6, seed=3)
    labels = [0, 1, 1, 0, 1, 0]
    data = hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer(), smoothing=0.1)
    return data, zoo.build("bert", seed=0), zoo.build("bert", seed=1)


def language_modelling() -> tuple[Any, nn.Module, nn.Module]:
    config = LlamaConfig(
        vocab_size=99, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        models.append(LlamaForCausalLM(config))
    return hc.task("language-modelling", texts=sentences(6, seed=3), tokenizer=word_tokenizer()), models[0], models[1]


def translation(folder: Path) -> tuple[Any, nn.Module, nn.Module]:
    tokenizer = laboratory.vocabulary(folder / "v")
    pairs = laboratory.parallel()["dev"]
    data = Translation(source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer, smoothing=0.1)
    torch.manual_seed(0)
    one = laboratory.model(tokenizer)
    with torch.no_grad():
        other = laboratory.model(tokenizer)
        for parameter in other.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return data, one, other


@pytest.fixture(params=["classification", "language-modelling", "translation"])
def lesson(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, nn.Module, nn.Module]:
    """A task, a model and its teacher."""
    if request.param == "translation":
        return translation(tmp_path)
    return classification() if request.param == "classification" else language_modelling()


def by_hand(data: Any, batch: Any, model: nn.Module, teacher: nn.Module) -> float:
    """Example by example, prediction by prediction."""
    found, wanted = (data.logits(one, batch).double().softmax(-1) for one in (model, teacher))
    distance = 0.0
    for row, column in data.predicted(batch).nonzero().tolist():
        p, q = wanted[row, column], found[row, column]
        distance += float(sum(p[word] * (p[word].log() - q[word].log()) for word in range(len(p))))
    return (1 - SHARE) * float(data.loss_sum(model, batch)) + SHARE * distance


def test_the_loss_is_that_of_the_formula(lesson: tuple[Any, nn.Module, nn.Module]) -> None:
    data, model, teacher = lesson
    model.eval(), teacher.eval()
    batch = data.batch([0, 2, 3, 5])
    with torch.no_grad():
        expected = by_hand(data, batch, model, teacher)
        assert float(distilled(data, teacher, SHARE).loss_sum(model, batch)) == pytest.approx(expected, rel=1e-5)


def test_a_model_that_is_its_own_teacher_has_nothing_to_learn(lesson: tuple[Any, nn.Module, nn.Module]) -> None:
    data, model, _ = lesson
    model.eval()
    loss = distilled(data, model, 1.0).loss_sum(model, data.batch([0, 1, 2]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0, abs=1e-4)
    largest = max(float(parameter.grad.abs().max()) for parameter in model.parameters() if parameter.grad is not None)
    assert largest < 1e-5


def test_the_teacher_is_neither_taught_nor_changed(lesson: tuple[Any, nn.Module, nn.Module]) -> None:
    data, model, teacher = lesson
    model.train(), teacher.train()
    before = weights(teacher)
    batch = data.batch([0, 1])
    task = distilled(data, teacher, SHARE)
    torch.manual_seed(0)
    first = task.loss_sum(model, batch)
    first.backward()
    assert teacher.training, "as it was before: a copy teaches"
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    torch.manual_seed(0)
    assert torch.equal(first, task.loss_sum(model, batch)), "a teacher draws no random numbers"


def test_everything_else_is_the_task_itself(lesson: tuple[Any, nn.Module, nn.Module]) -> None:
    data, model, teacher = lesson
    task = distilled(data, teacher, SHARE)
    assert task.fingerprint == data.fingerprint
    assert task.held_out(model) == data.held_out(model)
    assert distilled(data, teacher, 0.0) is data
    again = copy.deepcopy(task)
    assert again.fingerprint == data.fingerprint


def test_a_task_that_says_nothing_of_predictions_is_refused() -> None:
    batches = hc.task.of([{"input_ids": torch.ones(1, 2).long()}], nll=lambda *_: torch.zeros(1))
    with pytest.raises(UsageError, match="'given' cannot be trained on"):
        distilled(batches, zoo.build("bert"), 0.5)


# planted truth: labels that lie

LEARNING: dict[str, Any] = {"steps": 4, "gate_rate": 0.8, "keep": hc.Budget(heads=4)}


def tuning(share: float = 0.0, steps: int = 60) -> hc.Tuning:
    return hc.Tuning(steps, share, warmup=2, batch=200, rate=3e-3)


def agreement(data: Any, one: nn.Module, other: nn.Module) -> float:
    """Share of texts for which two models give the same class."""
    batch = data.batch(range(len(data)))
    with torch.no_grad():
        answers = [data.logits(model.eval(), batch).argmax(-1) for model in (one, other)]
    return float((answers[0] == answers[1]).float().mean())


def test_what_the_model_knew_is_kept_where_labels_say_the_opposite() -> None:
    model = zoo.build("bert", seed=0).eval()
    texts, tokenizer = sentences(60, seed=1), word_tokenizer()
    with torch.no_grad():
        blank = hc.task("classification", texts=texts, labels=[0] * 60, tokenizer=tokenizer)
        answers = blank.logits(model, blank.batch(range(60)))[:, 0]
        model.classifier.bias -= answers.mean(0)  # both classes about as often
        opposite = (1 - blank.logits(model, blank.batch(range(60)))[:, 0].argmax(-1)).tolist()
    assert 10 < sum(opposite) < 50
    data = hc.task("classification", texts=texts, labels=opposite, tokenizer=tokenizer)
    knew = zoo.build("bert", seed=0)
    knew.load_state_dict(model.state_dict())
    obeyed = hc.prune(model, data, choose="l0", tune=tuning(), **LEARNING).model
    assert agreement(data, obeyed, knew) < 0.3
    taught = hc.prune(model, data, choose="l0", tune=tuning(1.0), inplace=True, **LEARNING)  # the teacher is cut itself
    assert agreement(data, taught.model, knew) > 0.9
    assert taught.record.signature.arguments["tuning"]["distill"] == 1.0


def test_a_kill_changes_nothing(tmp_path: Path) -> None:
    data, model, _ = classification()
    asked: dict[str, Any] = {**LEARNING, "tune": tuning(0.5, steps=30)}
    whole = hc.prune(model, data, choose="l0", folder=tmp_path / "whole", **asked)

    def stop(part: str, done: int, of: int) -> None:
        if part == "fine-tuning" and done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.prune(model, data, choose="l0", folder=tmp_path / "parts", save_seconds=0.0, progress=stop, **asked)
    parts = hc.prune(model, data, choose="l0", folder=tmp_path / "parts", **asked)
    one, other = (found.model.state_dict() for found in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_share_beyond_the_whole_is_refused() -> None:
    with pytest.raises(UsageError, match=r"distill must be a number, 0 or more and at most 1; got 1\.5"):
        hc.Tuning(distill=1.5)


def test_a_task_that_would_ignore_the_teacher_is_refused() -> None:
    """Its loss is trained on as it is: the model would learn nothing of the teacher, without a word."""

    class Weighted(Classification):
        def loss_sum(self, model: nn.Module, batch: Any) -> torch.Tensor:
            return 2 * self.nll(model, batch).sum()

    data = Weighted(texts=["w3 w4", "w5"], labels=[0, 1], tokenizer=word_tokenizer())
    with pytest.raises(UsageError, match=r"'classification' has a loss_sum of its own.*logits_loss.*distill=0"):
        distilled(data, zoo.build("bert"), SHARE)
    assert distilled(data, zoo.build("bert"), 0.0) is data
