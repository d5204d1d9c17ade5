"""Compensation: the dense solution, the masked model with hooks, planted truths, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from torch import Tensor, nn

import headcount as hc
import zoo
from behaviour import difference, hooks, identical, observe, outputs, tolerance, uneven, weights
from forks import shared_by
from headcount.errors import UnknownName, UsageError, VerificationError
from headcount.probes.padding import real_tokens
from headcount.probes.projections import Projection, projected
from headcount.record.codec import encode
from headcount.sites.fingerprint import weight_hash
from headcount.sites.running import evaluating
from headcount.sites.site import Site
from headcount.surgery.ascent import HELD_OUT, _joint_order
from headcount.surgery.compensations.compensation import columns, compensations
from headcount.surgery.spill import Spill
from tokens import sentences, word_tokenizer

HOWS = ("none", "bias", "scale", "lstsq")


def batches(model: nn.Module, count: int = 4, rows: int = 5, length: int = 9) -> list[dict[str, Tensor]]:
    """Random tokens, padded on the right; targets too where the model has a decoder beside its encoder."""
    random = torch.Generator().manual_seed(1)
    found = []
    for _ in range(count):
        ids = torch.randint(3, zoo.VOCABULARY, (rows, length), generator=random)
        mask = torch.ones_like(ids)
        mask[1::2, -3:] = 0
        batch = {"input_ids": ids, "attention_mask": mask}
        if getattr(model.config, "is_encoder_decoder", False):
            batch |= {"decoder_input_ids": ids[:, :7], "decoder_attention_mask": mask[:, :7]}
        found.append(batch)
    return found


def run(model: nn.Module, batch: Any) -> Tensor:
    output = model(**batch)
    first = next(value for value in output.values() if isinstance(value, Tensor))
    return first.double().flatten(1).square().mean(1)


def task_of(model: nn.Module, **size: int) -> Any:
    return hc.task.of(batches(model, **size), nll=run)


def rows_at(model: nn.Module, site: Site, task: Any, projections: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Obvious: run everything, keep all rows. Inputs [N, A], outputs [N, O], and whether a row is held out [N]."""
    x, y, held = [], [], []
    every = min(HELD_OUT, sum(len(batch["input_ids"]) for batch in task.batches()))
    offset = 0
    for batch in task.batches():
        seen: list[Tensor] = []
        first = site.output.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0]))
        second = site.output.register_forward_hook(lambda _, __, output, seen=seen: seen.append(output))
        with evaluating(model), projected(model, projections):
            task.nll(model, batch)
        first.remove()
        second.remove()
        real = real_tokens(model, site, seen[0].unflatten(-1, (site.num_heads, site.head_dim)), batch).bool()
        x.append(seen[0][real].double())
        y.append(seen[1][real].double())
        examples = torch.arange(offset, offset + len(real)) % every == every - 1
        held.append(examples[:, None].expand_as(real)[real])
        offset += len(real)
    return torch.cat(x), torch.cat(y), torch.cat(held)


def dense(x: Tensor, y: Tensor, weight_OK: Tensor, rho: float, *, intercept: bool) -> tuple[Tensor, Tensor | None]:
    """min |x W + b - y|^2 + rho |W - W0|^2 as one tall least-squares problem; b is not held to anything."""
    if np.isinf(rho):  # on these rows no change is better than any
        return weight_OK, (y - x @ weight_OK.T).mean(0) if intercept else None
    ones = torch.ones(len(x), int(intercept), dtype=torch.float64)
    left = torch.cat([torch.cat([x, ones], 1), torch.eye(x.shape[1] + len(ones.T)).double() * rho**0.5])
    if intercept:
        left[-1, -1] = 0.0
    right = torch.cat([y, weight_OK.T * rho**0.5, torch.zeros(len(ones.T), y.shape[1]).double()])
    found = torch.linalg.lstsq(left, right, driver="gelsd").solution
    return found[: x.shape[1]].T, found[-1] if intercept else None


@pytest.mark.parametrize("architecture", ["bert", "marian", "llama", "gpt2", "t5", "albert"])
def test_lstsq_is_the_dense_solution_at_every_site(architecture: str) -> None:
    """Climbing with layers left out gives what running everything gives, and the solve what a dense solver gives."""
    model = zoo.build(architecture, zoo.backends(architecture)[-1])
    task, sites = task_of(model), hc.locate(model)
    mask = sites.mask(off=uneven(sites))
    found = hc.compensate(model, mask, task, "lstsq")
    assert len(found.fits) > 0
    below: dict[Any, Projection] = {}
    for key, fit in found.fits.items():
        site = sites[key]
        keep = columns([place for place, head in enumerate(site.head_names()) if mask[head]], site.head_dim)
        own = Projection.of(site)
        masked_weight = torch.zeros_like(own.weight_OK)
        masked_weight[:, keep] = own.weight_OK[:, keep]
        own_masked = {**below, key: Projection(masked_weight, own.bias_O)}
        if architecture == "albert":  # one module in all layers: call after call
            x, y = (_calls(model, site, task, given, place) for given, place in ((own_masked, 0), ({}, 1)))
        else:
            x, y = rows_at(model, site, task, own_masked)[0], rows_at(model, site, task, {})[1]
        weight_OK, bias_O = dense(x[:, keep], y, own.weight_OK[:, keep], fit.rho, intercept=own.bias_O is not None)
        scale = float(weight_OK.abs().max())
        torch.testing.assert_close(fit.weight_OK, weight_OK, rtol=0, atol=1e-5 * scale)
        if bias_O is not None:
            torch.testing.assert_close(fit.bias_O, bias_O, rtol=0, atol=1e-5 * max(1.0, float(bias_O.abs().max())))
        below[key] = found.projections[key]


def _calls(model: nn.Module, site: Site, task: Any, projections: Any, place: int) -> Tensor:
    rows = []
    for batch in task.batches():
        seen: list[tuple[Tensor, Tensor]] = []
        handle = site.output.register_forward_hook(lambda _, given, output, seen=seen: seen.append((given[0], output)))
        with evaluating(model), projected(model, projections):
            task.nll(model, batch)
        handle.remove()
        rows += [pair[place][batch["attention_mask"].bool()].double() for pair in seen]
    return torch.cat(rows)


@pytest.mark.parametrize("size", [{}, {"count": 1, "rows": 3}], ids=["many", "three"])
def test_the_strength_is_the_best_on_rows_that_were_left_out(bert: nn.Module, size: dict[str, int]) -> None:
    """Every strength, solved densely on the other rows, is no better on the held-out rows than the one chosen.

    Of fewer than five examples the last is left out: without one, nothing would keep the fit from memorising them.
    """
    from headcount.surgery.compensations.ridge import STRENGTHS

    task, sites = task_of(bert, **size), hc.locate(bert)
    site = sites["encoder.0"]
    found = hc.compensate(bert, sites.mask(off=["encoder.0.1", "encoder.0.2"]), task, "lstsq").fits[site.key]
    x, y, held = rows_at(bert, site, task, {})
    keep = columns([0, 3], site.head_dim)
    x, weight_OK = x[:, keep], Projection.of(site).weight_OK[:, keep]
    unit = float((x[~held] - x[~held].mean(0)).square().mean())
    errors = {}
    for strength in STRENGTHS:
        w, b = dense(x[~held], y[~held], weight_OK, strength * unit * float((~held).sum()), intercept=True)
        errors[strength] = float((x[held] @ w.T + b - y[held]).square().sum())
    best = min(errors, key=errors.__getitem__)
    every = float((x - x.mean(0)).square().mean()) * len(x)
    assert found.rho == pytest.approx(best * every, rel=1e-6)
    total = float((y[held] - y[held].mean(0)).square().sum())
    assert found.explained == pytest.approx(1 - errors[best] / total, abs=1e-6)


@pytest.mark.parametrize("architecture", ["bert", "albert"])
def test_tokens_are_counted_once_however_many_layers_share_a_module(architecture: str) -> None:
    model = zoo.build(architecture).eval()
    mask, data = hc.locate(model).mask(off=["encoder.0.0"]), batches(model)
    tokens = sum(int(batch["attention_mask"].sum()) for batch in data)
    once = hc.task.of(data, nll=run)
    twice = hc.task.of(data, nll=lambda model, batch: run(model, batch) + run(model, batch))
    assert hc.compensate(model, mask, once).rows == tokens
    assert hc.compensate(model, mask, twice).rows == 2 * tokens, "each run has texts of its own"


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("architecture", ["bert", "marian", "llama"])
def test_with_all_heads_kept_nothing_changes(architecture: str, how: str) -> None:
    model = zoo.build(architecture)
    same = hc.remove(model, hc.locate(model).mask(), compensate=how, task=task_of(model), verify=False)
    assert identical(weights(same), weights(model))


@pytest.mark.parametrize("how", ["scale", "lstsq"])
def test_a_fit_with_nothing_to_make_up_for_leaves_the_weights(bert: nn.Module, how: str) -> None:
    """A head whose columns are zero goes: the others are fitted, and stay what they were."""
    site = hc.locate(bert)["encoder.1"]
    with torch.no_grad():
        site.output.weight[:, site.head_dim : 2 * site.head_dim] = 0
    mask = hc.locate(bert).mask(off="encoder.1.1")
    plain, fitted = (hc.remove(bert, mask, compensate=each, task=task_of(bert)) for each in ("none", how))
    for name, tensor in weights(plain).items():
        torch.testing.assert_close(weights(fitted)[name], tensor, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "how"),
    [
        *((architecture, how) for architecture in ("bert", "llama") for how in HOWS),
        ("marian", "lstsq"),
        *(pytest.param("marian", how, marks=pytest.mark.slow) for how in HOWS[:-1]),
    ],
)
def test_folding_equals_hooking(architecture: str, how: str) -> None:
    model = zoo.build(architecture)
    sites, before = hc.locate(model), weight_hash(model)
    mask, bias = sites.mask(off=uneven(sites)), architecture == "llama"
    found = hc.compensate(model, mask, task_of(model), how, add_bias=bias)
    small = hc.remove(model, mask, compensate=found, verify=False)
    with projected(model, found.projections):
        expected = observe(model)
    assert difference(expected, observe(small)) <= tolerance(model)
    assert hc.verify(model, small, mask, compensation=found) <= tolerance(model)
    if how != "none":
        with pytest.raises(VerificationError):
            hc.verify(model, small, mask)
    assert weight_hash(model) == before
    assert hooks(model) == hooks(small) == 0
    assert identical(outputs(copy.deepcopy(small)), outputs(small))


def test_bias_is_mean_replacement_folded_in(marian: nn.Module) -> None:
    sites, task = hc.locate(marian), task_of(marian)
    mask = sites.mask(off=uneven(sites))
    small = hc.remove(marian, mask, compensate="bias", task=task)
    with hc.masked(marian, mask, replace="mean", calibration=task.batches()):
        expected = observe(marian, generate=False)
    assert difference(expected, observe(small, generate=False)) <= 1e-4


# planted truths


def plant(model: nn.Module, change: Any) -> Site:
    """Rewrite the value and output projections of layer 0 of a BERT so that its heads depend on each other."""
    site = hc.locate(model)["encoder.0"]
    with torch.no_grad():
        change(site.module, site.output, site.head_dim)
    return site


def copy_head(attention: Any, source: int, target: int, size: int) -> None:
    for projection in (attention.query, attention.key, attention.value):
        projection.weight[target * size : (target + 1) * size] = projection.weight[source * size : (source + 1) * size]
        projection.bias[target * size : (target + 1) * size] = projection.bias[source * size : (source + 1) * size]


def lost(model: nn.Module, how: str, off: str = "encoder.0.2") -> float:
    """How far the outputs of the pruned model are from the full model's, against no compensation."""
    task, mask = task_of(model, count=8), hc.locate(model).mask(off=off)
    batch = batches(model)[0]
    full = outputs(model, batch)["logits"]
    plain, made_up_for = (
        outputs(hc.remove(model, mask, compensate=each, task=task, verify=False), batch)["logits"]
        for each in ("none", how)
    )
    return float((made_up_for - full).abs().max() / (plain - full).abs().max())


def test_a_linear_function_of_a_kept_head_is_made_up_for_by_lstsq(bert: nn.Module) -> None:
    def change(attention: Any, _: Any, size: int) -> None:
        copy_head(attention, 0, 2, size)  # the same attention, and values turned by a matrix
        turn = torch.randn(size, size, generator=torch.Generator().manual_seed(0))
        attention.value.weight[2 * size : 3 * size] = turn @ attention.value.weight[:size]
        attention.value.bias[2 * size : 3 * size] = turn @ attention.value.bias[:size]

    plant(bert, change)
    assert lost(bert, "lstsq") < 1e-3
    assert lost(bert, "scale") > 0.1
    assert lost(bert, "bias") > 0.1


def test_a_duplicated_head_is_made_up_for_by_scale(bert: nn.Module) -> None:
    def change(attention: Any, output: Any, size: int) -> None:
        copy_head(attention, 0, 2, size)
        output.weight[:, 2 * size : 3 * size] = output.weight[:, :size]

    site = plant(bert, change)
    assert lost(bert, "scale") < 1e-3
    assert lost(bert, "bias") > 0.1
    fit = hc.compensate(bert, hc.locate(bert).mask(off="encoder.0.2"), task_of(bert), "scale").fits[site.key]
    kept = Projection.of(site).weight_OK[:, columns([0, 1, 3], site.head_dim)]
    factors = [float((fit.weight_OK / kept)[:, place * site.head_dim].median()) for place in range(3)]
    assert factors == pytest.approx([2.0, 1.0, 1.0], abs=1e-3)


def test_a_constant_head_is_made_up_for_by_bias(bert: nn.Module) -> None:
    def change(attention: Any, _: Any, size: int) -> None:
        attention.value.weight[2 * size : 3 * size] = 0

    plant(bert, change)
    assert all(lost(bert, how) < 1e-4 for how in ("bias", "scale", "lstsq"))


# what it takes and gives


def test_projections_without_bias_get_one_only_if_asked(llama: nn.Module, tmp_path: Path) -> None:
    sites, task = hc.locate(llama), task_of(llama)
    mask = sites.mask(off=[*uneven(sites), "decoder.1.*"])
    plain = hc.remove(llama, mask, compensate="lstsq", task=task)
    assert not [name for name in weights(plain) if name.endswith("o_proj.bias")]
    with pytest.raises(UsageError, match="add_bias"):
        hc.remove(llama, mask, compensate="bias", task=task)
    for how in ("bias", "lstsq"):
        small = hc.remove(llama, mask, compensate=how, task=task, add_bias=True)
        assert len([name for name in weights(small) if name.endswith("o_proj.bias")]) == 3
        hc.save(small, tmp_path / how, standalone=True)
        again = hc.load(tmp_path / how)
        assert identical(weights(again), weights(small))
        assert difference(observe(small), observe(again)) == 0.0
        hc.save(again, tmp_path / f"{how} again")
        assert identical(weights(hc.load(tmp_path / f"{how} again")), weights(small))
        further = hc.remove(again, hc.locate(again).mask(off="decoder.0.1"))
        assert len([name for name in weights(further) if name.endswith("o_proj.bias")]) == 3


def test_a_bias_is_not_added_without_a_fit(llama: nn.Module) -> None:
    mask, task = hc.locate(llama).mask(off="decoder.0.1"), task_of(llama)
    with pytest.raises(UsageError, match="add_bias is for a compensation"):
        hc.remove(llama, mask, add_bias=True)
    with pytest.raises(UsageError, match="fitted without a bias"):
        hc.remove(llama, mask, compensate=hc.compensate(llama, mask, task), add_bias=True)
    hc.remove(llama, mask, compensate=hc.compensate(llama, mask, task, add_bias=True), add_bias=True)


def test_a_fit_of_other_weights_is_refused(bert: nn.Module) -> None:
    mask = hc.locate(bert).mask(off="encoder.0.1")
    fitted = hc.compensate(bert, mask, task_of(bert))
    with pytest.raises(UsageError, match="fitted for other weights"):
        hc.remove(zoo.build("bert", seed=1).eval(), mask, compensate=fitted)
    hc.remove(copy.deepcopy(bert), mask, compensate=fitted)


def test_an_added_bias_is_no_stock_checkpoint(llama: nn.Module, tmp_path: Path) -> None:
    sites = hc.locate(llama)
    mask = sites.mask(off=[head for head in sites.heads if head.index % 2])
    small = hc.remove(llama, mask, compensate="lstsq", task=task_of(llama), add_bias=True)
    hc.save(small, tmp_path / "small")
    found = hc.load(tmp_path / "small")
    assert difference(observe(small), observe(found)) == 0.0
    assert found.config.head_pruning["sites"]["decoder.0"]["bias"] is True


def test_pruning_and_compensating_twice(bert: nn.Module) -> None:
    task, sites = task_of(bert), hc.locate(bert)
    once = hc.remove(bert, sites.mask(off="encoder.0.1"), compensate="lstsq", task=task)
    twice = hc.remove(once, hc.locate(once).mask(off="encoder.0.3"), compensate="lstsq", task=task)
    assert hc.locate(twice)["encoder.0"].heads == (0, 2)


def test_more_than_fits_into_memory_goes_to_disk(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    sites, task = hc.locate(bert), task_of(bert)
    mask, most = sites.mask(off=uneven(sites)), [0]
    expected = hc.compensate(bert, mask, task)
    before = Spill.get

    def get(self: Spill, key: Any) -> Any:
        most[0] = max(most[0], self.on_disk)
        return before(self, key)

    monkeypatch.setattr(Spill, "get", get)
    found = hc.compensate(bert, mask, task, room=0)
    assert most[0] >= 3 * 4  # three sites, four batches
    for key, fit in expected.fits.items():
        assert torch.equal(found.fits[key].weight_OK, fit.weight_OK)


def test_one_example_is_enough_for_a_fit_of_default_strength(bert: nn.Module) -> None:
    task = task_of(bert, count=1, rows=1)
    small = hc.remove(bert, hc.locate(bert).mask(off="encoder.0.1"), compensate="lstsq", task=task)
    assert all(torch.isfinite(tensor).all() for tensor in weights(small).values() if tensor.is_floating_point())


@pytest.mark.parametrize("how", HOWS)
def test_what_a_single_example_explains_is_not_known(bert: nn.Module, how: str) -> None:
    """No rows are held out: on those of the fit it would look too good."""
    fitted = hc.compensate(bert, hc.locate(bert).mask(off="encoder.0.1"), task_of(bert, count=1, rows=1), how)
    (fit,) = fitted.fits.values()
    assert np.isnan(fit.explained)
    assert np.isnan(fit.before)
    assert encode(fitted.to_result())["sites"]["encoder.0"]["explained"] is None


def test_which_choices_are_held_out_does_not_depend_on_the_batch_size() -> None:
    """Multiple choice has a row of the model for each choice; examples are held out, with all of their choices."""
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=4, intermediate_size=16,
        initializer_range=0.4,
    )  # fmt: skip
    model = tf.BertForMultipleChoice(config).eval()
    ids, labels = torch.randint(5, 60, (12, 3, 8)), torch.arange(12) % 3

    def nll(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return nn.functional.cross_entropy(
            model(input_ids=batch["input_ids"]).logits, batch["labels"], reduction="none"
        )

    fits = []
    for size in (1, 2, 12):
        parts = zip(ids.split(size), labels.split(size), strict=True)
        task = hc.task.of([{"input_ids": part, "labels": label} for part, label in parts], nll=nll)
        (fit,) = hc.compensate(model, hc.locate(model).mask(off=["encoder.0.1"]), task).fits.values()
        fits.append((fit.before, fit.explained))
    np.testing.assert_allclose(fits[1:], fits[:1] * 2, rtol=1e-4)


def test_a_bias_is_judged_by_the_mean_of_the_other_rows(bert: nn.Module) -> None:
    task, site = task_of(bert, count=1, rows=2), hc.locate(bert)["encoder.0"]
    fit = hc.compensate(bert, hc.locate(bert).mask(off="encoder.0.1"), task, "bias").fits[site.key]
    x, y, held = rows_at(bert, site, task, {})
    projection, gone = Projection.of(site), columns([1], site.head_dim)
    left = x.clone()
    left[:, gone] = x[~held][:, gone].mean(0)
    error = (left @ projection.weight_OK.T + projection.bias_O - y)[held].square().sum(1).mean()
    total = (y[held] - y[held].mean(0)).square().sum(1).mean()
    assert fit.explained == pytest.approx(float(1 - error / total), abs=1e-9)


def test_the_order_of_the_tensors_of_a_batch_makes_no_difference(bert: nn.Module) -> None:
    places = {"position_ids": torch.arange(9)[None]}
    plain = batches(bert, rows=4)
    first, last = ([{**places, **batch} for batch in plain], [{**batch, **places} for batch in plain])
    found, expected = (
        hc.compensate(bert, hc.locate(bert).mask(off="encoder.1.1"), hc.task.of(given, nll=run), "scale").fits
        for given in (first, last)
    )
    for key, fit in expected.items():
        assert torch.equal(found[key].weight_OK, fit.weight_OK)
        assert found[key].explained == fit.explained, "the same examples are held out"


def clip_nll(model: Any, batch: dict[str, Tensor]) -> Tensor:
    features = model.get_text_features if "input_ids" in batch else model.get_image_features
    found = features(**batch)
    return (found if isinstance(found, Tensor) else found.pooler_output).square().sum(-1)


def test_every_batch_may_reach_other_sites() -> None:
    """Texts before images, or after them, or in two tasks: the same weights of both towers."""
    model, random = zoo.build("clip").eval(), torch.Generator().manual_seed(1)
    texts = [{"input_ids": torch.randint(3, zoo.VOCABULARY, (5, 8), generator=random)} for _ in range(2)]
    images = [{"pixel_values": torch.randn(5, 3, 16, 16, generator=random)} for _ in range(2)]
    sites = hc.locate(model)
    mask = sites.mask(off=["text.0.0", "text.1.1", "vision.0.0", "vision.1.1"])
    alone = {
        key: projection
        for task in (hc.task.of(texts, nll=clip_nll), hc.task.of(images, nll=clip_nll))
        for key, projection in compensated_quietly(model, mask, task).items()
    }
    for order in (texts + images, images + texts, [texts[0], *images, texts[1]]):
        together = hc.compensate(model, mask, hc.task.of(order, nll=clip_nll)).projections
        assert together.keys() == alone.keys() == {(kind, layer) for kind in ("text", "vision") for layer in (0, 1)}
        for key, projection in together.items():
            assert torch.allclose(projection.weight_OK, alone[key].weight_OK, rtol=1e-4, atol=1e-6)
    with pytest.warns(UserWarning, match=r"Not compensated: vision\.0, vision\.1 did not run on the calibration data"):
        hc.compensate(model, mask, hc.task.of(texts, nll=clip_nll))


def compensated_quietly(model: nn.Module, mask: Any, task: Any) -> Any:
    with pytest.warns(UserWarning, match="Not compensated"):
        return hc.compensate(model, mask, task).projections


def test_a_batch_may_run_the_model_any_number_of_times(llama: nn.Module) -> None:
    """Windows of texts of different lengths, one after the other: whichever text comes first."""
    random = torch.Generator().manual_seed(1)
    windows = [torch.randint(3, zoo.VOCABULARY, (1, 10), generator=random) for _ in range(10)]
    long = [torch.cat(windows[start:stop], 1) for start, stop in ((0, 1), (1, 4), (4, 6), (6, 7), (7, 10))]

    def nll(model: Any, batch: dict[str, Tensor]) -> Tensor:
        runs = [model(input_ids=window).logits.square().mean((1, 2)) for window in batch["input_ids"].split(10, 1)]
        return torch.stack(runs).sum(0)

    mask = hc.locate(llama).mask(off=["decoder.0.0", "decoder.1.1"])
    results = [
        hc.compensate(llama, mask, hc.task.of([{"input_ids": ids} for ids in texts], nll=nll), "bias", add_bias=True)
        for texts in (long, long[::-1])
    ]
    assert results[0].rows == results[1].rows == 100
    for key, projection in results[0].projections.items():
        assert torch.allclose(projection.bias_O, results[1].projections[key].bias_O, atol=1e-6)


def test_sites_of_all_batches_are_in_one_order() -> None:
    text, image, both = [("decoder", 0), ("decoder", 1)], [("vision", 0)], [("vision", 0), ("decoder", 0)]
    assert _joint_order([text, both]) == [("vision", 0), ("decoder", 0), ("decoder", 1)]
    assert _joint_order([image, text]) == [("vision", 0), ("decoder", 0), ("decoder", 1)]
    assert _joint_order([]) == []


def test_it_is_cheap_in_runs(bert: nn.Module) -> None:
    """The full model runs once; climbing computes every layer once, and its attention once more."""
    task, sites, calls = task_of(bert, count=3), hc.locate(bert), []
    handles = [
        module.register_forward_pre_hook(lambda *_, name=name: calls.append(name))
        for name, module in bert.named_modules()
        if name.endswith(("intermediate.dense", "self.query"))
    ]
    hc.compensate(bert, sites.mask(off=[f"encoder.{layer}.0" for layer in range(3)]), task)
    for handle in handles:
        handle.remove()
    feed_forward = sum("intermediate" in name for name in calls)
    assert feed_forward == 3 * 3 + 3 * 2  # the full model, and the climb without the last layer's
    assert sum("query" in name for name in calls) == 3 * 3 + 3 * (3 + 2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"compensate": "lstq"}, UnknownName, "Did you mean 'lstsq'"),
        ({"compensate": "lstsq", "task": None}, UsageError, "needs task="),
        ({"task": hc.task.of([], nll=run)}, UsageError, "no batches"),
    ],
)
def test_wrong_input(bert: nn.Module, given: dict[str, Any], error: type, message: str) -> None:
    mask = hc.locate(bert).mask(off="encoder.0.1")
    with pytest.raises(error, match=message):
        hc.remove(bert, mask, **{"compensate": "lstsq", "task": task_of(bert), **given})
    other = hc.compensate(bert, hc.locate(bert).mask(off="encoder.0.2"), task_of(bert))
    with pytest.raises(UsageError, match="another mask"):
        hc.remove(bert, mask, compensate=other)
    with hc.masked(bert, mask), pytest.raises(UsageError, match="exit its with block"):
        hc.compensate(bert, mask, task_of(bert))
    assert hooks(bert) == 0


def test_an_error_on_the_way_leaves_nothing_behind(bert: nn.Module) -> None:
    before, calls = outputs(bert), [0]

    def failing(model: nn.Module, batch: Any) -> Tensor:
        calls[0] += 1
        if calls[0] == 8:
            raise ZeroDivisionError
        return run(model, batch)

    with pytest.raises(ZeroDivisionError):
        hc.compensate(bert, hc.locate(bert).mask(off="encoder.1.1"), hc.task.of(batches(bert), nll=failing))
    assert hooks(bert) == 0
    assert identical(outputs(bert), before)


def test_what_it_did_is_plain_json(bert: nn.Module) -> None:
    found = hc.compensate(bert, hc.locate(bert).mask(off=["encoder.0.1", "encoder.2.0"]), task_of(bert))
    said = json.loads(json.dumps(encode(found.to_result()), allow_nan=False))
    assert "lstsq" in said.values()
    assert set(said["sites"]) == {"encoder.0", "encoder.2"}
    assert all(site["explained"] >= site["explained_without"] for site in said["sites"].values())
    assert said["rows"] == sum(int(batch["attention_mask"].sum()) for batch in batches(bert))


def test_every_way_is_a_member() -> None:
    assert set(compensations) == set(HOWS)


def test_two_processes_come_to_the_result_of_one() -> None:
    model = zoo.build("bert")
    mask = hc.locate(model).mask(off=uneven(hc.locate(model)))

    def fitted() -> list[tuple[np.ndarray, float]]:
        fits = hc.compensate(model, mask, task_of(model, count=5)).fits.values()
        return [(fit.weight_OK.numpy(), fit.rho) for fit in fits]

    alone = fitted()
    for together in shared_by(2, fitted):
        for (weight_OK, rho), (expected_OK, expected) in zip(together, alone, strict=True):
            np.testing.assert_allclose(weight_OK, expected_OK, rtol=0, atol=1e-9 * np.abs(expected_OK).max())
            assert rho == pytest.approx(expected, rel=1e-9)


def test_texts_from_a_task(bert: nn.Module) -> None:
    task = hc.task("classification", texts=sentences(20), labels=[i % 2 for i in range(20)], tokenizer=word_tokenizer())
    small = hc.remove(bert, hc.locate(bert).mask(off="encoder.0.1"), compensate="lstsq", task=task)
    assert len(hc.locate(small).heads) == 11
