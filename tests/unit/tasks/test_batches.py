"""Batches are made when asked for, and know how many they are and how many examples they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers as tf
from torch import Tensor, nn

import headcount as hc
import zoo
from headcount.errors import UsageError
from headcount.scores.pieces import summed
from headcount.tasks.batch import Batches, fingerprint, repeated, rows_of


def test_batches_are_made_one_by_one_and_counted() -> None:
    made: list[int] = []

    def make(rows: list[int]) -> int:
        made.append(sum(rows))
        return sum(rows)

    batches = Batches(make, [[1, 2], [3], [4]])
    assert (len(batches), made) == (3, [])
    assert next(batches) == 3
    assert made == [3]
    assert (list(batches), len(batches)) == ([3, 4], 3)


def test_work_on_batches_says_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    found = summed(Batches(sum, [[1, 2], [3]]), lambda batch: {"n": batch}, progress=lambda *at: told.append(at))
    assert found["n"] == 6
    assert told == [("batches", 0, 2), ("batches", 1, 2), ("batches", 2, 2)]
    plain: list[tuple[str, int, int]] = []
    summed(iter([1, 2, 3]), lambda batch: {"n": batch}, progress=lambda *at: plain.append(at))
    assert plain == [("batches", done, 3) for done in (0, 1, 2, 3)]


def test_rows_are_counted_by_most_tensors() -> None:
    ids, places = torch.zeros(3, 7), torch.arange(7)[None]
    assert rows_of({"position_ids": places, "input_ids": ids}) == 3
    assert rows_of({"scale": torch.tensor(1.0), "input_ids": ids}) == 3
    assert rows_of({"weight": torch.ones(2), "input_ids": ids, "labels": torch.zeros(3)}) == 3
    assert rows_of({"input_ids": ids[:1], "position_ids": places}) == 1
    assert rows_of({"input_ids": ids[:1], "labels": torch.zeros(1), "class_weights": torch.ones(5)}) == 1
    assert rows_of({"pixel_values": torch.zeros(40, 8), "attention_mask": ids, "input_ids": ids}) == 3, "patches"
    assert rows_of({"input_ids": torch.zeros(5, 7), "pixel_values": ids, "labels": torch.zeros(3)}) == 3, "prompts"
    with pytest.raises(UsageError, match="one row per example, such as input_ids; it has scale"):
        rows_of({"scale": torch.tensor(1.0)})


def test_what_all_examples_share_is_not_repeated() -> None:
    batch = {"position_ids": torch.arange(7)[None], "input_ids": torch.zeros(3, 7), "scale": torch.tensor(2.0)}
    twice = repeated(batch, 2)
    assert {name: list(value.shape) for name, value in twice.items()} == {
        "position_ids": [1, 7], "input_ids": [6, 7], "scale": []
    }  # fmt: skip


IDS = torch.arange(4, 18).reshape(2, 7)
OTHERS = {
    "positions": {"position_ids": torch.arange(7)[None]},
    "a number": {"scale": torch.tensor(1.0)},
    "class weights": {"weight": torch.tensor([1.0, 2.0])},
}


@pytest.mark.parametrize("score", ["ablation", "gradient", "integrated-gradients", "shapley"])
@pytest.mark.parametrize("other", OTHERS)
def test_batches_that_begin_with_what_all_examples_share(bert: nn.Module, other: str, score: str) -> None:
    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        places = {name: batch[name] for name in ("input_ids", "position_ids") if name in batch}
        labels, weight = torch.arange(len(batch["input_ids"])) % 2, batch.get("weight")
        return nn.functional.cross_entropy(model(**places).logits, labels, weight=weight, reduction="none")

    options = {"permutations": 2} if score == "shapley" else {"steps": 2} if "integrated" in score else {}
    rows = [torch.cat([IDS, IDS[:1]]), IDS]
    with_others = hc.task.of([{**OTHERS[other], "input_ids": ids, "token_type_ids": ids * 0} for ids in rows], nll=nll)
    alone = hc.task.of([{"input_ids": ids} for ids in rows], nll=lambda model, batch: nll(model, batch | OTHERS[other]))
    found, expected = (hc.score(score, bert, task, **options).numbers() for task in (with_others, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("score", ["ablation", "gradient", "fisher", "integrated-gradients", "shapley", "confidence"])
def test_a_batch_of_one_example_beside_class_weights(bert: nn.Module, score: str) -> None:
    weights = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0])

    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits = model(input_ids=batch["input_ids"]).logits
        return nn.functional.cross_entropy(logits, batch["labels"], weight=weights[:2], reduction="none")

    options = {"permutations": 4} if score == "shapley" else {"steps": 2} if "integrated" in score else {}
    rows = [torch.cat([IDS, IDS + 20]), IDS[:1] + 9]
    batches = [{"input_ids": ids, "labels": torch.arange(len(ids)) % 2} for ids in rows]
    given = [{**batch, "class_weights": weights} for batch in batches]
    found, expected = (hc.score(score, bert, hc.task.of(task, nll=nll), **options) for task in (given, batches))
    np.testing.assert_allclose(found.numbers(), expected.numbers(), rtol=1e-4, atol=1e-6)
    if expected.low is not None:
        np.testing.assert_allclose(found.low.numbers(), expected.low.numbers(), rtol=1e-4, atol=1e-6)


def test_attention_of_other_rows_than_the_batch_is_refused(bert: nn.Module) -> None:
    batch = {"ids": IDS[:1], "weight": torch.ones(5)}
    task = hc.task.of([batch], nll=lambda model, batch: model(input_ids=batch["ids"]).logits.square().mean(1))
    with pytest.raises(UsageError, match=r"encoder\.0 received 1 row.*batch has 5 examples"):
        hc.score("confidence", bert, task)


@pytest.mark.parametrize("score", ["ablation", "gradient"])
def test_a_model_with_several_rows_for_an_example(score: str) -> None:
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32
    )  # fmt: skip
    model, ids_BCT = tf.BertForMultipleChoice(config).eval(), torch.randint(4, 60, (3, 4, 7))

    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits_BC = model(input_ids=batch["input_ids"]).logits
        return nn.functional.cross_entropy(logits_BC, batch["labels"], reduction="none")

    batch = {"input_ids": ids_BCT, "labels": torch.tensor([0, 3, 1])}
    singly = [{name: value[row : row + 1] for name, value in batch.items()} for row in range(3)]
    found, expected = (hc.score(score, model, hc.task.of(task, nll=nll)).numbers() for task in ([batch], singly))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


SCORES = ["ablation", "gradient", "fisher", "integrated-gradients", "attribution-patching", "shapley"]


@pytest.mark.parametrize("layout", ["in turn", "in halves"])
@pytest.mark.parametrize("score", SCORES)
def test_one_loss_for_each_pair_of_rows(bert: nn.Module, score: str, layout: str) -> None:
    """As a reward model has it: the same as pairs in a dimension of their own."""
    pairs = [torch.randint(4, 60, (count, 2, 7), generator=torch.Generator().manual_seed(count)) for count in (4, 2)]

    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        ids = batch["input_ids"]
        if ids.dim() == 3:
            reward_P2 = model(input_ids=ids.flatten(0, 1)).logits[:, 0].unflatten(0, (-1, 2))
        else:
            reward_R = model(input_ids=ids).logits[:, 0]
            reward_P2 = reward_R.unflatten(0, (-1, 2)) if layout == "in turn" else reward_R.unflatten(0, (2, -1)).T
        return -nn.functional.logsigmoid(20 * (reward_P2[:, 0] - reward_P2[:, 1]))

    options = {"permutations": 4} if score == "shapley" else {"steps": 2} if "integrated" in score else {}
    rows = [pair if layout == "in turn" else pair.transpose(0, 1) for pair in pairs]
    batches = [{"input_ids": ids.flatten(0, 1)} for ids in rows]
    apart = [{"input_ids": ids} for ids in pairs]
    found, expected = (hc.score(score, bert, hc.task.of(given, nll=nll), **options) for given in (batches, apart))
    np.testing.assert_allclose(found.numbers(), expected.numbers(), rtol=1e-3, atol=1e-5)


def _ranked(score_B: Tensor, label_B: Tensor) -> Tensor:
    sign_BB = torch.sign(label_B[:, None] - label_B)
    return nn.functional.softplus(-sign_BB * (score_B[:, None] - score_B)).mean(1)


def _centred(score_B: Tensor, label_B: Tensor) -> Tensor:
    return (score_B - score_B.mean() - label_B).square()


def _neighbours(score_B: Tensor, label_B: Tensor) -> Tensor:
    """Each row beside the other of its pair: two losses of two rows."""
    both_P2 = score_B.unflatten(0, (-1, 2))
    return (both_P2 - both_P2.flip(1)).flatten().sub(label_B).square()


@pytest.mark.parametrize(
    ("compared", "sizes"), [(_ranked, (1, 4)), (_centred, (2, 3)), (_centred, (1, 1)), (_neighbours, (2, 4))]
)
def test_a_loss_that_compares_the_examples_of_a_batch(
    bert: nn.Module, compared: Callable[[Tensor, Tensor], Tensor], sizes: tuple[int, int]
) -> None:
    """A mean over the batch is the same of the same examples twice, but not of copies with other heads."""

    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return compared(10 * model(input_ids=batch["input_ids"]).logits[:, 0], batch["labels"])

    random = torch.Generator().manual_seed(0)
    batches = [
        {"input_ids": torch.randint(4, 60, (size, 7), generator=random), "labels": torch.arange(size) / 2}
        for size in sizes
    ]
    task = hc.task.of(batches, nll=nll)
    assert not task.separate(bert)
    found, expected = (hc.score("ablation", bert, task, fast=fast).numbers() for fast in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    change, slopes = 1e-2, []
    for head_H in torch.eye(len(hc.locate(bert).heads)):
        ends = []
        for moved in (change, -change):
            with torch.no_grad(), hc.masked(bert, 1 + moved * head_H):
                ends.append(torch.cat([nll(bert, batch) for batch in batches]).double())
        slopes.append(float(((ends[0] - ends[1]) / (2 * change)).abs().mean()))
    gradient = hc.score("gradient", bert, task, normalize=False).numbers()
    np.testing.assert_allclose(gradient, slopes, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("rows", [3, 1])
def test_losses_that_compare_nothing_are_separate(bert: nn.Module, rows: int) -> None:
    task = hc.task.of([{"input_ids": IDS.repeat(2, 1)[:rows]}], nll=lambda model, batch: model(**batch).logits.sum(1))
    assert task.separate(bert)


@pytest.mark.parametrize("name", ["labels", "target"])
def test_more_losses_than_texts_are_of_the_images(name: str) -> None:
    """Zero-shot: every image is compared with the texts of the classes, whatever its class is called."""
    model, random = zoo.build("clip"), torch.Generator().manual_seed(0)
    size = model.config.vision_config.image_size
    batch = {
        "input_ids": torch.randint(5, 20, (3, 5), generator=random),
        "pixel_values": torch.randn(7, 3, size, size, generator=random),
        name: torch.arange(7) % 3,
    }

    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits = model(input_ids=batch["input_ids"], pixel_values=batch["pixel_values"]).logits_per_image
        return nn.functional.cross_entropy(logits, batch[name], reduction="none")

    task = hc.task.of([batch], nll=nll)
    with torch.no_grad():
        assert task.quality(model).value == pytest.approx(float(nll(model, batch).mean()), rel=1e-5)
    for score in ("ablation", "gradient"):
        assert np.isfinite(hc.score(score, model, task).numbers()).all()


def test_the_losses_of_tokens_are_no_examples(bert: nn.Module) -> None:
    task = hc.task.of([{"input_ids": IDS}], nll=lambda model, batch: model(**batch).logits.sum() + torch.zeros(14))
    for measured in (task.quality, lambda model: hc.score("gradient", model, task)):
        with pytest.raises(UsageError, match="at most one loss per example; got 14 losses of a batch of 2"):
            measured(bert)


LONG = torch.arange(4000)  # the text of a tensor leaves out the middle of more than 1000 elements
CHANGED = torch.where(LONG == 2000, 0, LONG)
INSIDE = {
    "a list": lambda tensor: [tensor, tensor],
    "a tuple": lambda tensor: (tensor, "text"),
    "a list of mappings": lambda tensor: [{"ids": tensor}],
    "a list in a list": lambda tensor: [[tensor], 3],
    "a mapping with a list": lambda tensor: {"texts": [tensor, LONG]},
    "a list of arrays": lambda tensor: [tensor.numpy()],
    "an array": lambda tensor: {"ids": tensor.numpy()},
}


@pytest.mark.parametrize("kind", INSIDE)
def test_all_elements_of_tensors_are_hashed_wherever_they_are(kind: str) -> None:
    first, same, other = (fingerprint([INSIDE[kind](tensor)]) for tensor in (LONG, LONG.clone(), CHANGED))
    assert first == same != other


def test_the_hash_of_texts_and_labels_is_that_of_earlier_versions() -> None:
    assert fingerprint([["one", "two"], [0, 1], ("three",), None]) == "aa641ed19e72bca72ed106b9c6ad489f44092597"
    assert fingerprint([{"input_ids": IDS, "texts": ["one", "two"]}]) == "448f4ded1dae9ae7218dc4c808d5ac9420219f8f"


def test_a_tensor_in_a_list_of_a_batch_that_changes_is_noticed() -> None:
    read = iter((LONG, CHANGED))

    class Changing:
        def __iter__(self) -> Any:
            return iter([{"texts": [next(read)], "labels": IDS}])

    task = hc.task.of(Changing(), nll=lambda _, batch: batch["labels"].sum(1))
    list(task.batches())
    with pytest.raises(UsageError, match="Batch 0 is not the same each time"):
        list(task.batches())


PLAIN = {
    "texts": lambda number: [f"text {number}", "other"],
    "texts with labels": lambda number: [("text", number), ("other", 1)],
    "named texts": lambda number: {"texts": [{"text": f"{number}"}], "labels": [1.0]},
    "a number": lambda number: {"texts": "text", "temperature": float(number)},
}


@pytest.mark.parametrize("kind", PLAIN)
def test_a_loader_that_shuffles_texts_is_noticed(kind: str) -> None:
    read = iter((1, 1, 2))

    class Changing:
        def __iter__(self) -> Any:
            return iter([PLAIN[kind](next(read))])

    task = hc.task.of(Changing(), nll=lambda _, __: torch.zeros(1))
    list(task.batches())
    list(task.batches())
    with pytest.raises(UsageError, match="Batch 0 is not the same each time"):
        list(task.batches())


def test_objects_of_a_batch_are_not_compared() -> None:
    """They have no content that is known: the same graph may be made anew each time."""

    class Making:
        def __iter__(self) -> Any:
            return iter([{"graphs": [object(), "text"], "labels": IDS}])

    task = hc.task.of(Making(), nll=lambda _, batch: batch["labels"].sum(1))
    assert len([*task.batches(), *task.batches()]) == 2


class Pair(NamedTuple):
    ids: Tensor
    labels: Tensor


@pytest.mark.parametrize("score", ["ablation", "gradient", "confidence", "fisher"])
@pytest.mark.parametrize("form", [list, tuple, Pair._make])
def test_batches_may_be_lists_and_tuples(bert: nn.Module, form: Any, score: str) -> None:
    labels = torch.tensor([0, 1])

    def nll(model: nn.Module, batch: Any) -> Tensor:
        assert isinstance(batch, Pair if form == Pair._make else form)
        return nn.functional.cross_entropy(model(batch[0]).logits, batch[1], reduction="none")

    parts = hc.task.of([form([IDS, labels])], nll=nll)
    named = hc.task.of([{"ids": IDS, "labels": labels}], nll=lambda model, batch: nll(model, form(batch.values())))
    assert parts.quality(bert).value == named.quality(bert).value
    found, expected = (hc.score(score, bert, task).numbers() for task in (parts, named))
    np.testing.assert_array_equal(found, expected)


def test_a_batch_that_is_a_tensor_or_no_tensors_at_all(bert: nn.Module) -> None:
    def nll(model: nn.Module, batch: Any) -> Tensor:
        return model(getattr(batch, "ids", batch)).logits.square().sum(1)

    assert hc.score("ablation", bert, hc.task.of([IDS], nll=nll)).numbers().min() > -1e9
    unknown = hc.task.of([type("Graph", (), {"ids": IDS})()], nll=nll)
    assert unknown.quality(bert).value > 0
    with pytest.raises(UsageError, match="needs a tensor with one row per example"):
        hc.score("ablation", bert, unknown)
