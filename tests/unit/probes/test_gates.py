"""Gates: their distribution against its formulas and by drawing; attached and detached; exactly k, softly."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headcount as hc
import zoo
from behaviour import hooks, identical, outputs, weights
from headcount.errors import UnknownName, UsageError
from headcount.probes.gated import VARIANTS, HardConcreteGates
from headcount.probes.gates import attached
from headcount.probes.hard_concrete import HardConcrete
from headcount.probes.subset import SubsetGates, relaxed_subset, top
from headcount.sites.inputs import example_batch

LOG_A = torch.tensor([-3.0, -0.7, 0.0, 0.4, 2.0, 2.5], dtype=torch.float64)
DRAWS = 200_000


def test_the_six_probabilities_of_figure_6() -> None:
    shape, log_a = HardConcrete(beta=0.5), torch.tensor([0.0, 2.0, -3.0], dtype=torch.float64)
    assert [round(value, 2) for value in shape.zero(log_a).tolist()] == [0.23, 0.04, 0.86]
    assert [round(value, 2) for value in shape.one(log_a).tolist()] == [0.23, 0.69, 0.01]


@pytest.mark.parametrize("shape", [HardConcrete(), HardConcrete(beta=0.5), HardConcrete(beta=0.7, low=-0.3, high=1.05)])
def test_drawn_gates_match_the_probabilities_and_the_mean(shape: HardConcrete) -> None:
    """Within five standard errors of what drawing can show."""
    uniform = torch.rand(DRAWS, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn = shape.sample(LOG_A, uniform)
    for found, value in (
        ((drawn == 0).double(), shape.zero(LOG_A)),
        ((drawn == 1).double(), shape.one(LOG_A)),
        ((drawn != 0).double(), shape.nonzero(LOG_A)),
        (drawn, shape.mean(LOG_A)),
    ):
        error = found.std(0) / math.sqrt(DRAWS)
        assert ((found.mean(0) - value).abs() <= 5 * error + 1e-9).all()


def slow_gate(u: float, log_a: float, beta: float, low: float, high: float) -> float:
    s = 1 / (1 + math.exp(-(math.log(u) - math.log(1 - u) + log_a) / beta))
    return min(1.0, max(0.0, s * (high - low) + low))


def test_a_gate_is_what_the_formula_says() -> None:
    shape = HardConcrete(beta=0.4, low=-0.2, high=1.3)
    for u, log_a in itertools.product((0.01, 0.3, 0.77), (-1.0, 0.5, 3.0)):
        found = shape.sample(torch.tensor(log_a, dtype=torch.float64), torch.tensor(u, dtype=torch.float64))
        assert float(found) == pytest.approx(slow_gate(u, log_a, 0.4, -0.2, 1.3), abs=1e-12)


def test_the_mean_against_a_fine_sum() -> None:
    """A million evenly spaced u in the formula of a gate."""
    uniform = (np.arange(1_000_000) + 0.5) / 1_000_000
    for log_a in (-2.0, 0.3, 2.5):
        s = 1 / (1 + np.exp(-(np.log(uniform) - np.log(1 - uniform) + log_a) / 0.33))
        slow = np.clip(1.2 * s - 0.1, 0, 1).mean()
        assert float(HardConcrete().mean(torch.tensor(log_a, dtype=torch.float64))) == pytest.approx(slow, abs=1e-7)


def test_the_gradient_of_the_penalty_by_finite_differences(bert: nn.Module) -> None:
    gates = HardConcreteGates(bert).double()
    with torch.no_grad():
        gates.logits_G.copy_(torch.linspace(-3, 3, len(gates.heads)))
    gates.penalty().backward()
    for place in range(len(gates.heads)):
        moved = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                gates.logits_G[place] += step
                moved.append(float(gates.penalty()))
                gates.logits_G[place] -= step
        assert float(gates.logits_G.grad[place]) == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-6)


def test_test_time_rule_is_the_likelier_end() -> None:
    shape = HardConcrete(beta=0.33, low=-0.3, high=1.05)  # not symmetric: the rule is not the sign of log_a
    uniform = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    for log_a in torch.linspace(-2, 2, 41, dtype=torch.float64):
        drawn = shape.sample(log_a, uniform)
        assert bool(shape.open(log_a)) == bool((drawn == 1).sum() > (drawn == 0).sum())
    assert HardConcrete().open(torch.tensor([-0.01, 0.01])).tolist() == [0.0, 1.0]
    assert float(HardConcrete().soft(torch.tensor(0.5))) == pytest.approx(1.2 / (1 + math.exp(-0.5)) - 0.1)


def test_probabilities_by_head(bert: nn.Module) -> None:
    gates = HardConcreteGates(bert, heads=["encoder.0.*"], variant="paper")
    with torch.no_grad():
        gates.logits_G.copy_(torch.tensor([0.0, 2.0, -3.0, 0.0]))
    found = gates.probabilities()
    figure_6 = {"zero": [0.23, 0.04, 0.86, 0.23], "one": [0.23, 0.69, 0.01, 0.23]}
    assert {name: [round(value, 2) for _, value in grid.items()] for name, grid in found.items()} == figure_6


def test_gates_to_go_on_with_are_what_they_are(bert: nn.Module) -> None:
    with (
        pytest.raises(UsageError, match="already sets kinds, heads and variant"),
        hc.gated(bert, gates=HardConcreteGates(bert), kinds=()),
    ):
        pass


def test_variants(bert: nn.Module) -> None:
    heads = len(hc.locate(bert).heads)
    started = {name: HardConcreteGates(bert, variant=name) for name in VARIANTS}
    assert started["default"].logits_G.tolist() == [2.5] * heads
    assert started["paper"].shape.beta == 0.5
    code = started["voita2019-code"]
    assert code.logits_G.abs().max() <= (3 / 4) ** 0.5
    assert code.logits_G.unique().numel() == heads
    assert code.penalty().item() == pytest.approx(code.expected().sum().item() / len(hc.locate(bert)))
    assert not set(code.chosen().tolist()) <= {0.0, 1.0}, "soft at test time"
    with pytest.raises(UnknownName, match="paper"):
        HardConcreteGates(bert, variant="papr")


def test_gates_multiply_heads_and_leave_nothing_behind(marian: nn.Module) -> None:
    before, kept = outputs(marian), weights(marian)
    with hc.gated(marian, kinds=("encoder",)) as gates:
        assert [head.kind for head in gates.heads] == ["encoder"] * 12
        with torch.no_grad():
            gates.logits_G[3] = -5.0
        mask = hc.locate(marian).mask(off=["encoder.0.3"])
        assert gates.mask() == mask
        inside = outputs(marian)
    with hc.masked(marian, mask):
        assert identical(inside, outputs(marian))
    assert not identical(before, inside)
    assert identical(before, outputs(marian))
    assert not hooks(marian)
    with pytest.raises(RuntimeError), hc.gated(marian):
        raise RuntimeError
    assert not hooks(marian)
    assert all(torch.equal(kept[name], value) for name, value in marian.state_dict().items())


def test_while_training_every_run_draws_anew_and_gradients_arrive(bert: nn.Module) -> None:
    batch = example_batch(bert)
    bert.train()
    with hc.gated(bert, heads=["encoder.0.1", "encoder.2.*"]) as gates:
        with torch.no_grad():
            gates.logits_G.zero_()  # half of what is drawn lies between 0 and 1
        seen = []
        for _ in range(2):
            bert(**batch).logits.square().sum().backward()
            seen.append(gates.current().detach().clone())
        assert not torch.equal(*seen)
        assert (gates.logits_G.grad != 0).any()
    assert [str(head) for head in gates.heads] == ["encoder.0.1", *(f"encoder.2.{i}" for i in range(4))]


def test_the_seed_decides_what_is_drawn(bert: nn.Module) -> None:
    def drawn(seed: int) -> list[Tensor]:
        torch.manual_seed(torch.seed() % 2**31)  # of the caller, and not of the gates
        with hc.gated(bert.train(), seed=seed) as gates, torch.no_grad():
            gates.logits_G.zero_()
            samples = []
            for _ in range(3):
                bert(input_ids=torch.arange(5, 11)[None])
                samples.append(gates.current().clone())
        return samples

    first, again, other = drawn(1), drawn(1), drawn(2)
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_makes_no_difference(bert: nn.Module, reentrant: bool, runs: int) -> None:
    batch, seen = example_batch(bert), []
    for checkpointing in (False, True):
        if checkpointing:
            bert.gradient_checkpointing_enable({"use_reentrant": reentrant})
        with hc.gated(bert.train()) as gates, torch.random.fork_rng():
            torch.manual_seed(1)
            with torch.no_grad():
                gates.logits_G.zero_()
            sum((run + 1) * bert(**batch).logits.square().sum() for run in range(runs)).backward()
        seen.append(gates.logits_G.grad)
    assert (seen[0] != 0).any()
    assert torch.allclose(*seen, rtol=1e-5)


def test_a_run_that_waits_too_long_for_its_backward_pass_is_refused(bert: nn.Module) -> None:
    batch = example_batch(bert)
    bert.gradient_checkpointing_enable({"use_reentrant": False})
    with hc.gated(bert.train()):
        first = bert(**batch).logits.sum()
        for _ in range(40):
            bert(**batch)
        with pytest.raises(UsageError, match="Call backward after every run"):
            first.backward()


def test_a_copy_made_inside_a_block_has_a_mode_of_its_own(bert: nn.Module) -> None:
    batch = example_batch(bert)
    with hc.gated(bert.train()) as gates:
        with torch.no_grad():
            gates.logits_G.zero_()
        other = copy.deepcopy(bert).eval()
        assert torch.equal(other(**batch).logits, other(**batch).logits)
        bert.eval()
        other.train()
        assert torch.equal(bert(**batch).logits, bert(**batch).logits)
        assert not torch.equal(other(**batch).logits, other(**batch).logits)


def test_a_gated_run_is_a_masked_run_with_those_values(marian: nn.Module) -> None:
    gates = HardConcreteGates(marian, kinds=("encoder", "cross"))
    with torch.no_grad():
        gates.logits_G.copy_(torch.linspace(-1, 1, len(gates.heads)))
    marian.train()
    gates.draw(torch.Generator().manual_seed(1))
    with attached(marian, gates, redraw=False):
        torch.manual_seed(0)  # dropout
        found = marian(**example_batch(marian)).logits
    values = dict(zip(gates.heads, gates.current().tolist(), strict=True))
    mask = torch.tensor([values.get(head, 1.0) for head in hc.locate(marian).heads])
    with hc.masked(marian, mask):
        torch.manual_seed(0)
        torch.testing.assert_close(found, marian(**example_batch(marian)).logits, rtol=0, atol=1e-5)


def test_settled_counts_what_is_near_an_end(bert: nn.Module) -> None:
    gates = HardConcreteGates(bert)
    with torch.no_grad():
        gates.logits_G.copy_(torch.tensor([8.0, -8.0, 0.0] * 4))
    assert gates.settled() == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "albert"])
def test_gates_work_on_every_form_of_attention(name: str) -> None:
    model = zoo.build(name).train()
    with hc.gated(model) as gates:
        with torch.no_grad():
            gates.logits_G.zero_()
        found = model(**example_batch(model))
        next(value for value in found.values() if torch.is_tensor(value)).float().square().sum().backward()
        assert gates.logits_G.grad is not None
        assert torch.isfinite(gates.logits_G.grad).all()


# exactly k


def slow_subset(scores: list[float], keep: int, temperature: float) -> list[float]:
    r, mask = list(scores), [0.0] * len(scores)
    for _ in range(keep):
        highest = max(r)
        powers = [math.exp((value - highest) / temperature) for value in r]
        p = [power / sum(powers) for power in powers]
        mask = [a + b for a, b in zip(mask, p, strict=True)]
        r = [value + math.log(max(1 - share, 1e-20)) for value, share in zip(r, p, strict=True)]
    return mask


@pytest.mark.parametrize("temperature", [1000.0, 1.0, 0.1])
@pytest.mark.parametrize("keep", [1, 3, 6])
def test_the_relaxed_subset_is_what_the_formula_says(keep: int, temperature: float) -> None:
    scores = [0.3, -1.2, 2.0, 0.1, 0.9, -0.4]
    found = relaxed_subset(torch.tensor(scores, dtype=torch.float64), keep, temperature)
    assert found.tolist() == pytest.approx(slow_subset(scores, keep, temperature), abs=1e-9)
    assert float(found.sum()) == pytest.approx(keep)


@pytest.mark.parametrize("keep", [0, 1, 4, 12])
def test_a_cold_subset_is_the_top_k_with_finite_gradients(bert: nn.Module, keep: int) -> None:
    gates = SubsetGates(bert, keep=keep)
    for temperature in (0.1, 1e-4, 1e-8):
        gates.temperature = temperature
        gates.draw(torch.Generator().manual_seed(2))
        gates.refresh()
        values = gates.current()
        if keep:
            (values * torch.arange(12.0)).sum().backward()
            assert torch.isfinite(gates.logits_G.grad).all()
    assert sorted(values.tolist()) == pytest.approx([0.0] * (12 - keep) + [1.0] * keep, abs=1e-4)
    assert len(gates.mask().kept) == keep


def test_a_subset_for_each_kind(marian: nn.Module) -> None:
    gates = SubsetGates(marian, keep={"encoder": 2, "cross": 5}, kinds=("encoder", "cross"))
    with torch.no_grad():
        gates.logits_G.copy_(torch.randn(24, generator=torch.Generator().manual_seed(0)))
    kept = gates.mask().kept
    assert [sum(head.kind == kind for head in kept) for kind in ("encoder", "decoder", "cross")] == [2, 12, 5]
    gates.temperature = 1e-8
    gates.refresh()
    values = dict(zip(gates.heads, gates.current().tolist(), strict=True))
    assert sum(value for head, value in values.items() if head.kind == "encoder") == pytest.approx(2)
    assert float(gates.mean().sum()) == pytest.approx(7)


def test_straight_through_is_hard_with_soft_gradients(bert: nn.Module) -> None:
    soft, hard = SubsetGates(bert, keep=4), SubsetGates(bert, keep=4, straight_through=True)
    for gates in (soft, hard):
        gates.draw(torch.Generator().manual_seed(3))
        gates.refresh()
        (gates.current() * torch.arange(12.0)).sum().backward()
    assert sorted(hard.current().tolist()) == pytest.approx([0.0] * 8 + [1.0] * 4, abs=1e-6)
    assert torch.equal(soft.logits_G.grad, hard.logits_G.grad)
    assert sorted(soft.current().tolist()) != pytest.approx([0.0] * 8 + [1.0] * 4, abs=1e-3)


def test_the_first_of_equals_stays() -> None:
    assert top(torch.tensor([1.0, 2.0, 2.0, 1.0]), 3).tolist() == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda model: SubsetGates(model, keep=13), "Cannot keep 13 heads: only 12 have gates"),
        (lambda model: SubsetGates(model, keep={"cross": 1}), "keep= has no number for them"),
        (lambda model: HardConcreteGates(model, kinds=("cross",)), "no cross heads"),
        (lambda model: HardConcreteGates(model, kinds="encoder"), "list of attention kinds"),
        (lambda model: HardConcreteGates(model, heads=["encoder.9.0"]), "no head"),
        (lambda _: HardConcrete(beta=0), "beta above 0"),
    ],
)
def test_wrong_input(bert: nn.Module, wrong: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong(bert)  # type: ignore[operator]
