"""Padding is what the model was given as padding, whatever the batch calls it.

Shapes: B batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from torch import Tensor, nn

import headcount as hc
import zoo
from headcount.probes.inputs import inputs_of
from headcount.probes.padding import real_tokens
from headcount.probes.positions import sides

LENGTHS = (9, 5, 7, 3)
OTHER_LENGTHS = (3, 9, 4, 8)
Loss = Callable[[nn.Module, Any], Tensor]


def _texts(lengths: tuple[int, ...] = LENGTHS, *, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Ids padded with 0, and their mask."""
    random = torch.Generator().manual_seed(seed)
    mask_BT = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return torch.randint(5, 50, mask_BT.shape, generator=random) * mask_BT, mask_BT


def _bert() -> nn.Module:
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
        max_position_embeddings=64, num_labels=3, initializer_range=0.4,
    )  # fmt: skip
    return tf.BertForSequenceClassification(config).eval()


def _nll(model: nn.Module, ids: Tensor, mask: Tensor | None, labels: Tensor) -> Tensor:
    logits = model(input_ids=ids, attention_mask=mask).logits
    return nn.functional.cross_entropy(logits, labels, reduction="none")


def _tokenised(model: nn.Module, batch: list[tuple[list[int], int]]) -> Tensor:
    """The loss of texts as lists of ids, which are padded here."""
    length = max(len(ids) for ids, _ in batch)
    ids_BT = torch.tensor([ids + [0] * (length - len(ids)) for ids, _ in batch])
    return _nll(model, ids_BT, (ids_BT != 0).long(), torch.tensor([label for _, label in batch]))


def _by_name(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return _nll(model, batch["input_ids"], batch["attention_mask"], batch["labels"])


IDS, MASK = _texts()
LABELS = torch.tensor([0, 1, 2, 1])
NAMED = {"input_ids": IDS, "attention_mask": MASK, "labels": LABELS}
FORMS: dict[str, tuple[Any, Loss]] = {
    "tuple": ((IDS, MASK, LABELS), lambda model, batch: _nll(model, *batch)),
    "positional": (
        (IDS, MASK, LABELS),
        lambda model, batch: nn.functional.cross_entropy(model(*batch[:2]).logits, batch[2], reduction="none"),
    ),
    "other names": (
        {"tokens": IDS, "real": MASK, "classes": LABELS},
        lambda model, batch: _nll(model, batch["tokens"], batch["real"], batch["classes"]),
    ),
    "mask of the loss": (
        {"input_ids": IDS, "labels": LABELS},
        lambda model, batch: _nll(model, batch["input_ids"], batch["input_ids"].ne(0), batch["labels"]),
    ),
    "another mask in the batch": (
        NAMED | {"attention_mask": torch.ones_like(MASK)},
        lambda model, batch: _nll(model, batch["input_ids"], batch["input_ids"].ne(0), batch["labels"]),
    ),
}


def _measured(model: nn.Module, batches: list[Any], loss: Loss) -> dict[str, np.ndarray]:
    """All that leaves out padding."""
    task = hc.task.of(batches, nll=loss)
    token = {"granularity": "token", "normalize": False}
    off = hc.locate(model).mask(off=["encoder.0.1", "encoder.1.2"])
    found = {
        "gradient": hc.score("gradient", model, task, **token).numbers(),
        "patching": hc.score("attribution-patching", model, task, replace="mean").numbers(),
        "compensation": hc.compensate(model, off, task, "bias").projections["encoder", 1].bias_O.numpy(),
    }
    if not isinstance(batches[0], list):  # confidence needs tensors with a row per example
        found["confidence"] = hc.score("confidence", model, task).numbers()
    means = hc.mean_outputs(model, list(task.batches()), run=task.nll)
    return found | {str(key): mean.numpy() for key, mean in means.items()}


def _assert_same(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    for name, numbers in found.items():
        np.testing.assert_allclose(numbers, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_the_mask_that_the_model_is_given_decides(form: str) -> None:
    batch, loss = FORMS[form]
    _assert_same(_measured(_bert(), [batch], loss), _measured(_bert(), [NAMED], _by_name))


def test_texts_that_the_loss_tokenises() -> None:
    texts = [(ids[:length].tolist(), int(label)) for ids, length, label in zip(IDS, LENGTHS, LABELS, strict=True)]
    whole = hc.mean_outputs(_bert(), [texts], run=_tokenised)
    alone = hc.mean_outputs(_bert(), [[text] for text in texts], run=_tokenised)
    for key in whole:
        torch.testing.assert_close(whole[key], alone[key], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [True, False])
def test_each_run_has_its_own_padding(masked: bool) -> None:
    """A bi-encoder: the loss runs the model on two texts. Without masks nothing is padding in the second."""
    other_ids, other_mask = _texts(OTHER_LENGTHS, seed=2)
    batch = NAMED | {"other_input_ids": other_ids, "other_attention_mask": other_mask}

    def pair(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        other = batch["other_attention_mask"] if masked else None
        return _by_name(model, batch) + _nll(model, batch["other_input_ids"], other, batch["labels"])

    model = _bert()
    with hc.tapped(model, "outputs") as taps, torch.no_grad():
        pair(model, batch)
        contexts = taps.calls("encoder.1")
    real = torch.cat([MASK, other_mask if masked else torch.ones_like(other_mask)]).bool()
    expected_HD = torch.cat(contexts)[real].double().mean(0)
    found = hc.mean_outputs(model, [batch], run=pair)["encoder", 1]
    torch.testing.assert_close(found, expected_HD, rtol=1e-4, atol=1e-6)

    with hc.tapped(model, "attention") as taps, torch.no_grad():
        pair(model, batch)
        attention_BHQK = torch.cat(taps.calls("encoder.1"))
    keys_BK = real & torch.cat([IDS, other_ids]).ne(0)
    peaks_BHQ = attention_BHQK.masked_fill(~keys_BK[:, None, None], 0.0).amax(-1)
    expected_H = peaks_BHQ.transpose(1, 2)[keys_BK].double().mean(0)
    found_H = hc.score("confidence", model, hc.task.of([batch], nll=pair)).numbers()[-4:]
    np.testing.assert_allclose(found_H, expected_H.numpy(), rtol=1e-4)


def test_a_mask_that_only_the_loss_uses_is_of_the_batch() -> None:
    """A causal model needs no mask of padding on the right."""
    model = zoo.build("gpt2")

    def loss(model: nn.Module, batch: Mapping[str, Tensor], *, given: bool) -> Tensor:
        mask = {"attention_mask": batch["attention_mask"]} if given else {}
        logits = model(input_ids=batch["input_ids"], **mask).logits[:, :-1]
        nll = nn.functional.cross_entropy(logits.transpose(1, 2), batch["input_ids"][:, 1:], reduction="none")
        return (nll * batch["attention_mask"][:, 1:]).sum(1)

    batch = {"input_ids": IDS, "attention_mask": MASK}
    first, second = (
        hc.mean_outputs(model, [batch], run=lambda model, batch, given=given: loss(model, batch, given=given))
        for given in (True, False)
    )
    for key in first:
        torch.testing.assert_close(first[key], second[key], rtol=1e-4, atol=1e-6)


def test_a_translation_in_a_tuple() -> None:
    model, (target, _) = zoo.build("marian"), _texts(OTHER_LENGTHS, seed=3)
    labels = target.masked_fill(target == 0, -100)

    def loss(model: nn.Module, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        logits = model(input_ids=ids, attention_mask=mask, labels=labels).logits
        return nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum(1)

    runs: list[tuple[Any, Loss]] = [
        ((IDS, MASK, labels), lambda model, batch: loss(model, *batch)),
        (NAMED | {"labels": labels}, lambda model, batch: loss(model, *batch.values())),
    ]
    tasks = [hc.task.of([batch], nll=nll) for batch, nll in runs]
    for name, options in (("confidence", {}), ("gradient", {"granularity": "token"})):
        np.testing.assert_allclose(*(hc.score(name, model, task, **options).numbers() for task in tasks), rtol=1e-4)


def test_steps_of_generation_have_the_present_tokens() -> None:
    """With a cache the mask names all tokens; a step has queries for the last."""
    model = zoo.build("llama")
    site = hc.locate(model)["decoder.0"]
    ids, mask = IDS.flip(1), MASK.flip(1)  # padding on the left
    queries: list[tuple[Tensor, Tensor]] = []
    real: list[Tensor] = []

    def see(site_: Any, values: dict[str, Tensor]) -> None:
        if site_.key == site.key:
            shape = values["attention"].shape
            query, key = sides(model, site, inputs.now, shape, ())
            queries.append((query.real_BT, key.real_BT))
            real.append(real_tokens(model, site, values["outputs"], inputs.now))

    batch = {"input_ids": ids, "attention_mask": mask}
    with inputs_of(model) as inputs, hc.tapped(model, ["attention", "outputs"], sink=see), torch.no_grad():
        inputs.begin(batch)
        model.generate(**batch, max_new_tokens=3, min_new_tokens=3, do_sample=False)
    for step, ((query_BQ, key_BK), real_BT) in enumerate(zip(queries, real, strict=True)):
        grown_BK = nn.functional.pad(mask.bool(), (0, step), value=True)
        assert torch.equal(key_BK, grown_BK)
        assert torch.equal(query_BQ, grown_BK[:, -query_BQ.shape[1] :])
        assert torch.equal(real_BT.bool(), query_BQ)
    assert len(queries) == 3


def test_a_run_that_failed_leaves_nothing_behind(bert: nn.Module) -> None:
    with inputs_of(bert) as inputs, torch.no_grad():
        inputs.begin({})
        with pytest.raises(IndexError):
            bert(input_ids=torch.full((1, 3), 10**6))
        bert(input_ids=IDS)
        assert not inputs.now
