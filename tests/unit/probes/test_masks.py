"""Masks: values, shapes, replacement, nesting, training, compilation, wrong input."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from behaviour import hooks, identical, outputs
from headcount.errors import MaskError, UsageError
from headcount.probes.positions import sides
from headcount.sites.inputs import example_batch


def test_nested_masks_multiply(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    a, b = (sites.grid(1.0).replace({"encoder.1.2": value}) for value in (0.5, 0.25))
    with hc.masked(bert, sites.grid(1.0).replace({"encoder.1.2": 0.125})):
        expected = outputs(bert)
    with hc.masked(bert, a), hc.masked(bert, b):
        assert identical(outputs(bert), expected)


def test_a_tensor_mask_can_change_in_place(bert: nn.Module) -> None:
    sites, mask = hc.locate(bert), torch.ones(12)
    with hc.masked(bert, sites.mask(off="encoder.0.1")):
        expected = outputs(bert)
    with hc.masked(bert, mask):
        mask[1] = 0
        assert identical(outputs(bert), expected)


def test_an_integer_mask_can_change_in_place_too(bert: nn.Module) -> None:
    sites, mask = hc.locate(bert), torch.ones(12, dtype=torch.bool)
    with hc.masked(bert, sites.mask(off="encoder.0.1")):
        expected = outputs(bert)
    with hc.masked(bert, mask):
        mask[1] = False
        assert identical(outputs(bert), expected)


def test_means_that_do_not_fit(bert: nn.Module) -> None:
    mask = hc.locate(bert).mask(off="encoder.0.0")
    for means in ({"encoder.0": torch.zeros(4, 16)}, {("encoder", layer): torch.zeros(4, 15) for layer in range(3)}):
        with pytest.raises(MaskError, match="Means must be a dict"), hc.masked(bert, mask, replace=means):
            pass


def test_no_number_is_no_mask(bert: nn.Module) -> None:
    with pytest.raises(MaskError, match="NaN"), hc.masked(bert, hc.locate(bert).grid(float("nan"))):
        pass


def test_lists_arrays_and_integers_are_masks_too(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    with hc.masked(bert, sites.mask(off="encoder.2.3")):
        expected = outputs(bert)
    for mask in (np.array([1] * 11 + [0]), torch.tensor([1] * 11 + [0])):
        with hc.masked(bert, mask):
            assert identical(outputs(bert), expected)


def test_all_heads_off_leaves_residual_and_output_bias(bert: nn.Module) -> None:
    """What masking a layer means, checked against zeroed output weights."""
    import copy

    mask = hc.locate(bert).mask(off="encoder.1.*")
    bare = copy.deepcopy(bert)
    bare.bert.encoder.layer[1].attention.output.dense.weight.data.zero_()
    with hc.masked(bert, mask):
        torch.testing.assert_close(outputs(bert)["logits"], outputs(bare)["logits"], rtol=0, atol=1e-6)


def test_mean_replacement_is_the_mean_over_real_tokens(bert: nn.Module) -> None:
    """The mean by a loop over tokens that are not padding; the replaced head is constant at exactly that value."""
    batches = [example_batch(bert, seed=seed) for seed in range(3)]
    rows = []
    for batch in batches:
        with hc.tapped(bert, "outputs") as taps, torch.no_grad():
            bert(**batch)
        for b in range(2):
            rows += [taps["encoder.1"][b, t] for t in range(12) if batch["attention_mask"][b, t]]
    expected_HD = torch.stack(rows).double().mean(0)
    means = hc.mean_outputs(bert, batches)
    torch.testing.assert_close(means["encoder", 1], expected_HD, rtol=0, atol=1e-6)

    mask = hc.locate(bert).mask(off="encoder.1.2")
    for given in ({"replace": "mean", "calibration": batches}, {"replace": means}):
        with hc.masked(bert, mask, **given), hc.tapped(bert, "outputs") as taps:
            outputs(bert)
        seen = taps["encoder.1"]
        torch.testing.assert_close(seen[:, :, 2], expected_HD[2].float().expand(2, 12, -1), rtol=0, atol=1e-6)
        assert seen[:, :, 1].std() > 0
    assert hooks(bert) == 0


def test_means_of_an_encoder_decoder_leave_out_padding_on_both_sides(marian: nn.Module) -> None:
    batch = example_batch(marian)
    labels = torch.full((2, 9), 5)
    labels[1, 4:] = -100
    with hc.tapped(marian, "outputs") as taps, torch.no_grad():
        marian(**batch)
    means = hc.mean_outputs(marian, [{**batch, "labels": labels}])
    source, target = batch["attention_mask"].bool(), labels != -100
    torch.testing.assert_close(means["encoder", 0], taps["encoder.0"][source].double().mean(0))
    torch.testing.assert_close(means["cross", 2], taps["cross.2"][target].double().mean(0))


@pytest.mark.parametrize("start", [0, 2])
def test_means_leave_out_padding_of_targets_that_are_given_as_input(marian: nn.Module, start: int) -> None:
    """Padding comes last; the pad token (0) at the start, as T5 has it, and within a target counts."""
    batch = example_batch(marian) | {"decoder_input_ids": torch.tensor([[start, 5, 6, 7, 8], [start, 5, 0, 6, 0]])}
    batch["decoder_input_ids"] = torch.cat([batch["decoder_input_ids"], torch.zeros(2, 2, dtype=torch.long)], 1)
    with hc.tapped(marian, "outputs") as taps, torch.no_grad():
        marian(**batch)
    target = torch.arange(7) < torch.tensor([[5], [4]])
    means = hc.mean_outputs(marian, [batch])
    for kind in ("decoder", "cross"):
        torch.testing.assert_close(means[kind, 1], taps[f"{kind}.1"][target].double().mean(0))
        queries, _ = sides(marian, hc.locate(marian)[f"{kind}.1"], batch, torch.Size((2, 4, 7, 7)), ())
        assert torch.equal(queries.real_BT, target)
    empty = batch | {"decoder_input_ids": torch.zeros(2, 3, dtype=torch.long)}
    with hc.tapped(marian, "outputs") as taps, torch.no_grad():
        marian(**empty)
    torch.testing.assert_close(hc.mean_outputs(marian, [empty])["decoder", 0], taps["decoder.0"][:, 0].double().mean(0))


def test_rows_repeat_for_beams(marian: nn.Module) -> None:
    """A [batch, heads] mask under beam search writes for each example what it writes under its own mask."""
    from behaviour import text

    sites = hc.locate(marian)
    mask = torch.ones(2, 36)
    mask[0, ::2], mask[1, 1::3] = 0, 0
    with hc.masked(marian, mask, repeat=3):
        together = text(marian, beams=3)
    for row in range(2):
        grid = hc.HeadGrid(list(zip(sites.heads, mask[row].tolist(), strict=True)))
        with hc.masked(marian, grid):
            assert torch.equal(text(marian, beams=3)[row], together[row])


@pytest.mark.parametrize("rows", [None, 2])
@pytest.mark.parametrize("beams", [1, 3])
def test_beams_are_resampled_from_another_example(marian: nn.Module, rows: int | None, beams: int) -> None:
    """The row before is a beam of the same example; the encoder has a row per example."""
    source = torch.arange(3, 15).reshape(2, 6)
    target = torch.arange(3, 3 + 2 * beams * 4).reshape(2 * beams, 4)  # every beam has other tokens

    def run() -> Any:
        with hc.tapped(marian, "outputs") as taps, torch.no_grad():
            states = marian.get_encoder()(input_ids=source)[0].repeat_interleave(beams, 0)
            marian(encoder_outputs=(states,), decoder_input_ids=target)
        return taps

    grid = hc.locate(marian).mask(off=["encoder.0.1", "decoder.0.2"])
    plain = run()
    with hc.masked(
        marian,
        grid if rows is None else torch.tensor(grid.numbers()).expand(rows, -1),
        replace="resample",
        repeat=beams,
    ):
        moved = run()
    assert torch.equal(moved["encoder.0"][:, :, 1], plain["encoder.0"][:, :, 1].roll(1, 0))
    assert torch.equal(moved["decoder.0"][:, :, 2], plain["decoder.0"][:, :, 2].roll(beams, 0))
    assert torch.equal(moved["decoder.0"][:, :, 1], plain["decoder.0"][:, :, 1])


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_beams_of_one_example_have_no_other_to_resample_from(marian: nn.Module, kind: str) -> None:
    batch = {name: tensor[:1] for name, tensor in example_batch(marian).items() if not name.startswith("decoder")}
    with (
        pytest.raises(UsageError, match="at least two examples in every batch; got one"),
        hc.masked(marian, hc.locate(marian).mask(off=f"{kind}.0.0"), replace="resample", repeat=3),
    ):
        marian.generate(**batch, num_beams=3, max_new_tokens=3, do_sample=False)


def test_rows_that_are_no_multiple_of_the_beams_are_not_resampled(bert: nn.Module) -> None:
    mask = hc.locate(bert).mask(off="encoder.0.0")
    with (
        pytest.raises(MaskError, match=r"batch of 2, no multiple of repeat=3"),
        hc.masked(bert, mask, replace="resample", repeat=3),
    ):
        outputs(bert)


@pytest.mark.parametrize("shape", [(11,), (2, 11), (3, 2, 12), ()])
def test_wrong_shapes(bert: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(MaskError, match=r"\[12\] or \[batch, 12\]"), hc.masked(bert, torch.ones(shape)):
        pass
    assert hooks(bert) == 0


def test_wrong_batch(bert: nn.Module) -> None:
    with hc.masked(bert, torch.ones(3, 12)), pytest.raises(MaskError, match="3 rows"):
        outputs(bert)
    assert hooks(bert) == 0


def test_masks_of_other_models(bert: nn.Module, marian: nn.Module) -> None:
    with pytest.raises(MaskError, match="no value for"), hc.masked(marian, hc.locate(bert).mask()):
        pass
    with pytest.raises(MaskError, match="never had"), hc.masked(bert, hc.locate(marian).mask()):
        pass


def test_a_mask_of_the_original_fits_the_pruned_model_if_it_keeps_nothing_that_is_gone(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    small = hc.remove(bert, sites.mask(off="encoder.0.1"))
    with hc.masked(small, sites.mask(off=["encoder.0.1", "encoder.0.2"])):
        masked = outputs(small)
    with hc.masked(bert, sites.mask(off=["encoder.0.1", "encoder.0.2"])):
        torch.testing.assert_close(masked["logits"], outputs(bert)["logits"])
    with pytest.raises(MaskError, match=r"keeps encoder\.0\.1, already removed"), hc.masked(small, sites.mask()):
        pass


def test_wrong_replacement(bert: nn.Module) -> None:
    mask = hc.locate(bert).mask(off="encoder.0.0")
    for given, message in (
        ({"replace": "mean"}, "calibration"),
        ({"replace": "median"}, "median"),
        ({"repeat": 0}, "repeat"),
    ):
        with pytest.raises(UsageError, match=message), hc.masked(bert, mask, **given):
            pass
    with pytest.raises(UsageError, match="empty"), hc.masked(bert, mask, replace="mean", calibration=[]):
        pass


@pytest.mark.parametrize("architecture", ["bert", "llama", "marian", "t5"])
def test_training_with_gradient_checkpointing(architecture: str) -> None:
    """The same mask gradients with and without; a tap sees each layer once although it runs twice."""
    model = zoo.build(architecture).train()
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, float) and ("drop" in name or (name == "p" and isinstance(module, nn.Dropout))):
                setattr(module, name, 0.0)
    batch, heads = example_batch(model), len(hc.locate(model).heads)

    def gradients() -> tuple[torch.Tensor, dict[str, int]]:
        mask = torch.ones(2, heads, requires_grad=True)
        with hc.masked(model, mask), hc.tapped(model, "outputs") as taps:
            model(**batch).logits.tanh().sum().backward()
        return mask.grad, {site.name: len(taps.calls(site.key)) for site in hc.locate(model)}

    plain, _ = gradients()
    model.gradient_checkpointing_enable()
    checkpointed, calls = gradients()
    torch.testing.assert_close(checkpointed, plain, rtol=0, atol=1e-5 * float(plain.abs().max()))
    assert set(calls.values()) == {1}


# the others take longer than the rest of this file; they are also compiled in surgery/test_remove.py
@pytest.mark.parametrize(
    "architecture", ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("llama", "marian"))]
)
def test_under_compilation(architecture: str) -> None:
    """A model compiled and run before is masked and unmasked again all the same, without a break in its graph."""
    torch._dynamo.reset()
    model = zoo.build(architecture)
    if architecture == "bert":  # the first case, which make test runs: a layer takes as long as the next
        model.bert.encoder.layer = model.bert.encoder.layer[:2]
    sites, batch = hc.locate(model), example_batch(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)

    def run(module: nn.Module) -> torch.Tensor:
        with torch.no_grad():
            output = module(**batch)
        return output.logits

    whole = run(compiled)
    mask = sites.mask(off=[sites.heads[0], sites.heads[5]])
    with hc.masked(model, mask):
        expected = run(model)
    for given in (model, compiled):
        with hc.masked(given, mask):
            torch.testing.assert_close(run(compiled), expected)
        torch.testing.assert_close(run(compiled), whole)
    assert (expected - whole).abs().max() > 1e-3


def test_a_compiled_mask_changes_without_recompilation() -> None:
    """Hooks put in before compilation: one graph, no breaks, and new values in place need no new graph."""
    torch._dynamo.reset()
    model = zoo.build("bert")
    batch, mask = example_batch(model), torch.ones(12)
    with hc.masked(model, mask):
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        with torch.no_grad():
            compiled(**batch)
            graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            mask[3] = 0
            changed = compiled(**batch).logits
            assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs
            torch.testing.assert_close(changed, model(**batch).logits)


def test_a_copy_made_inside_a_block_is_plain_after_it(bert: nn.Module) -> None:
    plain, mask = outputs(bert), hc.locate(bert).mask(off="encoder.0.1")
    with hc.masked(bert, mask):
        duplicate, masked = copy.deepcopy(bert), outputs(bert)
        assert identical(outputs(duplicate), masked)
    assert identical(outputs(duplicate), plain)
    with hc.masked(duplicate, mask):
        assert identical(outputs(duplicate), masked)


def test_two_threads_do_not_mask_one_model(bert: nn.Module) -> None:
    """Each would run with the masks of both. A copy for each thread is right."""
    sites = hc.locate(bert)

    def masked(model: nn.Module) -> object:
        with hc.masked(model, sites.mask(off="encoder.1.2")):
            return outputs(model)

    expected = masked(bert)
    with ThreadPoolExecutor(1) as other, hc.masked(bert, sites.mask(off="encoder.0.1")):
        with pytest.raises(UsageError, match="Another thread has a mask"):
            other.submit(masked, bert).result()
        assert identical(other.submit(masked, zoo.build("bert")).result(), expected)
    assert identical(masked(bert), expected)


def test_means_are_only_needed_where_heads_are_masked() -> None:
    """Cross-attention that never runs has no mean output; other heads can be replaced by theirs."""
    bart, ids = zoo.idle_cross(), torch.arange(5, 21).reshape(2, 8)
    sites = hc.locate(bart)
    with torch.no_grad():
        whole = bart(input_ids=ids).logits
        with hc.masked(bart, sites.mask(off="decoder.0.1"), replace="mean", calibration=[{"input_ids": ids}]):
            assert not torch.equal(bart(input_ids=ids).logits, whole)
    with (
        pytest.raises(MaskError, match=r"\('cross', 0\)"),
        hc.masked(bart, sites.mask(off="cross.0.1"), replace="mean", calibration=[{"input_ids": ids}]),
    ):
        pass
