"""What must hold on every architecture and every attention backend it has."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

import headcount as hc
import zoo
from behaviour import (
    Behaviour,
    difference,
    generates,
    hooks,
    identical,
    layer,
    observe,
    outputs,
    text,
    tolerance,
    uneven,
    weights,
)
from headcount.errors import VerificationError
from headcount.probes.replay import remembered, replayed
from headcount.sites.fingerprint import weight_hash
from headcount.sites.inputs import example_batch
from headcount.sites.locate import families

SHAPES = ("uneven", "empty first layer", "empty middle layer")
Case = tuple[str, str]


def is_repeated(case: Case) -> bool:
    """Whether the architecture is tried with another backend too."""
    architecture, backend = case
    return backend != zoo.backends(architecture)[-1]


def shaped(
    cases: list[Case], shapes: tuple[str, ...] = SHAPES, *, repeated: tuple[str, ...] = ("uneven",)
) -> pytest.MarkDecorator:
    """Every shape of mask. `make test` tries `shapes`, and of these `repeated` with the second backend too."""
    values = [
        pytest.param(
            *case, shape, marks=[] if shape in (repeated if is_repeated(case) else shapes) else [pytest.mark.slow]
        )
        for case in cases
        for shape in SHAPES
    ]
    return pytest.mark.parametrize(("architecture", "backend", "shape"), values)


every_case = pytest.mark.parametrize(("architecture", "backend"), zoo.CASES)
every_separate_case = pytest.mark.parametrize(("architecture", "backend"), zoo.SEPARATE_CASES)
every_shape = shaped(zoo.CASES)
every_shape_of_writers = shaped(zoo.WRITING_CASES, SHAPES[:2])
# What is cut and what is written to disk does not depend on the backend: one of each architecture, the other is slow.
every_architecture = pytest.mark.parametrize(
    ("architecture", "backend"),
    [pytest.param(*case, marks=[pytest.mark.slow] if is_repeated(case) else []) for case in zoo.CASES],
)
# An empty layer is saved by the test of standalone folders, and cut with every mask.
every_uneven_architecture = shaped(zoo.CASES, SHAPES[:1], repeated=())


@cache  # tests run test by test, not case by case: a small cache would never be hit
def model_of(architecture: str, backend: str) -> nn.Module:
    return zoo.build(architecture, backend)


@cache
def removed(architecture: str, backend: str, shape: str) -> nn.Module:
    """For tests that leave it as it is."""
    model = model_of(architecture, backend)
    return hc.remove(model, mask_of(model, shape), verify=False)


@cache
def behaviour_of_removed(architecture: str, backend: str, shape: str) -> Behaviour:
    return observe(removed(architecture, backend, shape))


def mask_of(model: nn.Module, shape: str) -> hc.HeadGrid:
    sites = hc.locate(model)
    several = len({site.layer for site in sites}) > 1
    if shape == "uneven" or (shape == "empty middle layer" and not several):
        return sites.mask(off=uneven(sites))
    return sites.mask(off=layer(sites, 0 if shape == "empty first layer" else 1))


@every_case
def test_its_family_covers_it(architecture: str, backend: str) -> None:
    (family,) = {site.family for site in hc.locate(model_of(architecture, backend))}
    assert architecture in families[family].architectures


def test_every_model_that_writes_text_is_tried_on_it() -> None:
    assert {name for name in zoo.ARCHITECTURES if generates(model_of(name, "eager"))} == zoo.WRITERS


@every_case
def test_all_ones_is_identity(architecture: str, backend: str) -> None:
    model = model_of(architecture, backend)
    heads = len(hc.locate(model).heads)
    before = outputs(model)
    for mask in (torch.ones(heads), torch.ones(2, heads), hc.locate(model).mask()):
        with hc.masked(model, mask):
            assert identical(outputs(model), before)


@every_architecture
def test_every_head_matters_and_rows_of_a_mask_are_examples(architecture: str, backend: str) -> None:
    """Each head changes the output, and a [batch, heads] mask masks each example as a grid would mask it alone."""
    model = model_of(architecture, backend)
    sites, batch = hc.locate(model), example_batch(model)
    before = outputs(model, batch)
    name = next(key for key in before if key != "logits_per_text")
    without = []
    for head in sites.heads:
        with hc.masked(model, sites.mask(off=head)):
            without.append(outputs(model, batch))
        assert any(not torch.equal(without[-1][key], before[key]) for key in before), head
    if (architecture, backend) not in zoo.SEPARATE_CASES:
        return  # what one example gives depends on the others
    for first in range(0, len(sites.heads), 2):  # two heads at a time, each off for one of the two examples
        rows_off = (first, (first + 1) % len(sites.heads))
        per_example = torch.ones(2, len(sites.heads))
        per_example[range(2), rows_off] = 0
        with hc.masked(model, per_example):
            mixed = outputs(model, batch)
        for row, place in enumerate(rows_off):
            assert torch.equal(mixed[name][row], without[place][name][row])


@every_shape
def test_masked_equals_removed(architecture: str, backend: str, shape: str) -> None:
    model = model_of(architecture, backend)
    mask, before = mask_of(model, shape), weight_hash(model)
    small = hc.remove(model, mask, verify=False)
    with hc.masked(model, mask):
        expected = observe(model, generate=False)
    assert difference(expected, observe(small, generate=False)) <= tolerance(model)
    assert hc.locate(small).heads == mask.kept
    assert sum(p.numel() for p in small.parameters()) < sum(p.numel() for p in model.parameters())
    assert hooks(small) == hooks(model) == 0
    assert weight_hash(model) == before


@every_shape_of_writers
def test_masked_and_removed_write_the_same_text(architecture: str, backend: str, shape: str) -> None:
    """Greedy, with the same logits at every step, and by beam search."""
    model = model_of(architecture, backend)
    mask = mask_of(model, shape)
    small, written = (make(architecture, backend, shape) for make in (removed, behaviour_of_removed))
    with hc.masked(model, mask):
        greedy, searched = observe(model), text(model, beams=3)
    assert difference(greedy, written) <= tolerance(model)
    assert torch.equal(greedy.tokens, written.tokens)
    assert torch.equal(searched, text(small, beams=3))


@every_architecture
def test_wrong_head_removed_is_noticed(architecture: str, backend: str) -> None:
    model = model_of(architecture, backend)
    sites = hc.locate(model)
    small = hc.remove(model, sites.mask(off=sites.heads[0]), verify=False)
    with pytest.raises(VerificationError):
        hc.verify(model, small, sites.mask(off=sites.heads[1]))


@every_architecture
def test_pruning_twice_speaks_of_original_heads(architecture: str, backend: str) -> None:
    model = model_of(architecture, backend)
    sites = hc.locate(model)
    first, then = f"{sites[-1].name}.1", f"{sites[-1].name}.3"
    once = hc.remove(model, sites.mask(off=first), verify=False)
    twice = hc.remove(once, hc.locate(once).mask(off=then), verify=False)
    assert hc.locate(twice)[-1].heads == (0, 2)
    assert hc.verify(model, twice, sites.mask(off=[first, then])) <= tolerance(model)


@every_uneven_architecture
def test_save_and_load_twice_bit_for_bit(architecture: str, backend: str, shape: str, tmp_path: Path) -> None:
    small, behaviour = (make(architecture, backend, shape) for make in (removed, behaviour_of_removed))
    before, found = weights(small), small
    for folder in ("once", "twice") if shape == "uneven" else ("twice",):
        hc.save(found, tmp_path / folder)
        found = hc.load(tmp_path / folder, attn_implementation=backend)
        assert identical(weights(found), before)
        assert hc.locate(found).heads == hc.locate(small).heads
        assert difference(behaviour, observe(found, generate=folder == "twice")) == 0.0


@every_architecture
def test_stock_code_refuses_the_folder(architecture: str, backend: str, tmp_path: Path) -> None:
    """Never random weights: stock from_pretrained must fail on an unevenly pruned checkpoint."""
    small = removed(architecture, backend, "uneven")
    hc.save(small, tmp_path / "small")
    with pytest.raises((RuntimeError, ValueError)):
        getattr(transformers, type(small).__name__).from_pretrained(tmp_path / "small")


@every_architecture
def test_standalone_folder_needs_no_headcount(architecture: str, backend: str, tmp_path: Path) -> None:
    shape = "empty first layer"
    small, behaviour = (make(architecture, backend, shape) for make in (removed, behaviour_of_removed))
    hc.save(small, tmp_path / "small", standalone=True)
    config = transformers.AutoConfig.from_pretrained(tmp_path / "small")
    automatic = getattr(transformers, next(iter(config.auto_map)))
    found = automatic.from_pretrained(tmp_path / "small", trust_remote_code=True, attn_implementation=backend).eval()
    assert difference(behaviour, observe(found)) == 0.0
    assert identical(weights(hc.load(tmp_path / "small")), weights(small))


@every_architecture
def test_evenly_pruned_is_a_stock_checkpoint_where_the_config_can_say_so(
    architecture: str, backend: str, tmp_path: Path
) -> None:
    model = model_of(architecture, backend)
    sites = hc.locate(model)
    small = hc.remove(model, sites.mask(off=[head for head in sites.heads if head.index % 2]), verify=False)
    hc.save(small, tmp_path / "small")
    stock = getattr(transformers, type(model).__name__)
    if families[sites[0].family].stock is None:
        with pytest.raises((RuntimeError, ValueError)):
            stock.from_pretrained(tmp_path / "small")
        return
    plain = stock.from_pretrained(tmp_path / "small", attn_implementation=backend).eval()
    assert difference(observe(small), observe(plain)) <= tolerance(model)
    found = hc.load(tmp_path / "small", attn_implementation=backend)
    assert hc.locate(found).heads == hc.locate(small).heads
    further = hc.remove(found, hc.locate(found).mask(off=f"{sites[0].name}.2"))  # numbers of the original model
    hc.save(further, tmp_path / "further")
    again = hc.load(tmp_path / "further", attn_implementation=backend)
    assert difference(observe(further, generate=False), observe(again, generate=False)) == 0.0
    assert hc.locate(again)[0].heads == (0,)


@every_case
def test_probes_leave_nothing_behind(architecture: str, backend: str) -> None:
    model = model_of(architecture, backend)
    before, state, sites = outputs(model), weight_hash(model), hc.locate(model)
    implementation = model.config._attn_implementation
    probes = (
        lambda: hc.masked(model, sites.mask(off=sites.heads[0])),
        lambda: hc.masked(model, torch.zeros(2, len(sites.heads))),
        lambda: hc.tapped(model, ("outputs", "attention")),
        lambda: hc.head_mask(model, torch.zeros(sites[0].total)),
    )
    for probe in probes:
        with pytest.raises(ZeroDivisionError), probe():  # noqa: PT012
            outputs(model)
            raise ZeroDivisionError
        assert hooks(model) == 0
        assert weight_hash(model) == state
        assert model.config._attn_implementation == implementation
        assert identical(outputs(model), before)


@every_case
def test_taps_read_what_the_heads_compute(architecture: str, backend: str) -> None:
    """Attention rows sum to one, reductions are those of the attention, outputs are what the projection takes."""
    model = model_of(architecture, backend)
    what = ("outputs", "attention", "max", "argmax", "entropy")
    with hc.tapped(model, what) as taps:
        outputs(model)
    for site in hc.locate(model):
        assert taps.calls(site.key)
        for seen in taps.calls(site.key):
            attention_BHQK = seen["attention"]
            assert attention_BHQK.shape[1] == site.num_heads
            torch.testing.assert_close(attention_BHQK.sum(-1), torch.ones(attention_BHQK.shape[:3]))
            assert torch.equal(seen["max"], attention_BHQK.max(-1).values)
            assert torch.equal(seen["argmax"], attention_BHQK.argmax(-1))
            entropy = -(attention_BHQK * attention_BHQK.clamp_min(1e-30).log()).sum(-1)
            torch.testing.assert_close(seen["entropy"], entropy)
            assert seen["outputs"].shape[-2:] == (site.num_heads, site.head_dim)


@every_separate_case
def test_mask_gradients_are_those_of_single_examples(architecture: str, backend: str) -> None:
    """One backward with a [batch, heads] mask gives every example the gradient it has when it runs alone."""
    model = model_of(architecture, backend)
    batch, heads = example_batch(model), len(hc.locate(model).heads)

    def score(output: object) -> torch.Tensor:  # [B], a non-linear function of everything the model puts out
        tensor = next(value for value in output.values() if isinstance(value, torch.Tensor))  # type: ignore[attr-defined]
        return tensor.double().flatten(1).tanh().sum(-1)

    together = torch.ones(2, heads, requires_grad=True)
    with hc.masked(model, together):
        score(model(**batch)).sum().backward()
    for row in range(2):
        alone = torch.ones(heads, requires_grad=True)
        with hc.masked(model, alone):
            score(model(**{name: value[row : row + 1] for name, value in batch.items()})).sum().backward()
        scale = float(alone.grad.abs().max())
        assert scale > 0
        torch.testing.assert_close(together.grad[row], alone.grad, rtol=0, atol=1e-4 * scale)
    assert all(parameter.grad is None or model.zero_grad() is None for parameter in model.parameters())


@every_architecture
def test_pruned_model_is_an_ordinary_module(architecture: str, backend: str) -> None:
    """Copied, moved to another number format and back, trained: like any other."""
    import copy

    small = removed(architecture, backend, "empty first layer" if architecture != "albert" else "uneven")
    twin = copy.deepcopy(small)
    assert identical(outputs(twin), outputs(small))
    assert hc.locate(twin).heads == hc.locate(small).heads
    if architecture != "clip":  # clip's logit scale overflows in half precision on noise
        assert all(torch.isfinite(value).all() for value in outputs(copy.deepcopy(small).to(torch.bfloat16)).values())
    twin.train()
    sum(
        value.float().sum() for value in twin(**example_batch(twin)).values() if isinstance(value, torch.Tensor)
    ).backward()
    trained = [name for name, p in twin.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0]
    assert any(site.path in name for site in hc.locate(twin) for name in trained if site.num_heads)


@every_architecture
def test_replay_computes_what_a_full_run_computes(architecture: str, backend: str) -> None:
    """For one head of every site: what lies below its layer is not computed again, and the outputs are the same."""
    model = model_of(architecture, backend)
    before, forwards = hooks(model), [module.__dict__.get("forward") for module in model.modules()]
    batch = example_batch(model)
    rows = next(len(value) for value in batch.values())
    with remembered(model, rows) as memory:
        outputs(model, batch)
    for site in hc.locate(model):
        mask = hc.locate(model).mask(off=site.head_names()[0])
        with hc.masked(model, mask):
            expected = outputs(model, batch)
            with replayed(model, memory, site):
                found = outputs(model, batch)
        scale = max(float(value.abs().max()) for value in expected.values())
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6 * max(scale, 1.0))
    assert hooks(model) == before
    assert [module.__dict__.get("forward") for module in model.modules()] == forwards


@every_uneven_architecture
def test_compensated_models_fold_save_and_copy(architecture: str, backend: str, shape: str, tmp_path: Path) -> None:
    """Removal with least squares in the plain weights equals the masked model with the fit attached; exact on disk."""
    import copy

    model = model_of(architecture, backend)
    mask, before = mask_of(model, shape), weight_hash(model)
    batches = [example_batch(model, batch=3, seed=seed) for seed in range(2)]

    def nll(live: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        tensor = next(value for value in live(**batch).values() if isinstance(value, torch.Tensor))
        return tensor.double().flatten(1).square().mean(1)

    found = hc.compensate(model, mask, hc.task.of(batches, nll=nll), "lstsq")
    assert set(found.fits) == {head.site for head in mask.heads if not mask[head]}
    small = hc.remove(model, mask, compensate=found, verify=False)
    batch = None if shape == "uneven" else batches[0]  # none: one is made up, and text is written from it
    assert hc.verify(model, small, mask, batch=batch, compensation=found) <= tolerance(model)
    hc.save(small, tmp_path / "small")
    again = hc.load(tmp_path / "small", attn_implementation=backend)
    assert identical(weights(again), weights(small))
    assert identical(outputs(copy.deepcopy(small)), outputs(small))
    assert hooks(small) == hooks(model) == 0
    assert weight_hash(model) == before
