"""gated: Hard Concrete gates on heads, in any training loop (Voita et al. 2019, section 6).

Shapes: G gated heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from headcount.errors import UsageError, check_name
from headcount.heads import HeadGrid
from headcount.probes.gates import Gates, attached
from headcount.probes.hard_concrete import HardConcrete
from headcount.sites.site import HeadNames


@dataclass(frozen=True)
class GateVariant:
    """Initial values of gates, their test-time values, and the sum of their penalty."""

    shape: HardConcrete = field(default_factory=HardConcrete)
    start: float | None = 2.5  # log_a; None: random around 0, by Glorot initialisation of a vector
    soft: bool = False  # at test time: a number between 0 and 1 instead of 0 or 1
    by_site: bool = False  # penalty: averaged over attention modules instead of summed over heads


VARIANTS = {
    "default": GateVariant(),
    # Figure 6 has beta .5; the paper does not give the initial values.
    "paper": GateVariant(HardConcrete(beta=0.5)),
    # The authors' code: all gates start near one half, which harms a converged model.
    "voita2019-code": GateVariant(start=None, soft=True, by_site=True),
}


class HardConcreteGates(Gates):
    """Hard Concrete gates: 0 or 1 with probabilities that have gradients."""

    def __init__(
        self,
        model: nn.Module,
        *,
        kinds: Sequence[str] | None = None,
        heads: HeadNames | None = None,
        variant: str = "default",
        seed: int = 0,
    ) -> None:
        super().__init__(model, kinds=kinds, heads=heads, seed=seed)
        check_name("variant of gates", variant, VARIANTS)
        self.variant = VARIANTS[variant]
        self.shape = self.variant.shape
        self.logits_G = nn.Parameter(self._start())

    def _start(self) -> Tensor:
        if self.variant.start is not None:
            return torch.full((len(self.heads),), self.variant.start)
        at_site = [sum(other.site == head.site for other in self.heads) for head in self.heads]
        limit_G = (3 / torch.tensor(at_site, dtype=torch.float32)).sqrt()  # glorot's, both fans the heads of a site
        return (2 * torch.rand(len(self.heads), generator=self._random) - 1) * limit_G

    def relaxed(self, uniform_G: Tensor) -> Tensor:
        return self.shape.sample(self.logits_G, uniform_G)

    def chosen(self) -> Tensor:
        log_a_G = self.logits_G.detach()
        return self.shape.soft(log_a_G) if self.variant.soft else self.shape.open(log_a_G)

    def mean(self) -> Tensor:
        return self.shape.mean(self.logits_G)

    @property
    def soft(self) -> bool:
        return self.variant.soft

    @property
    def closing(self) -> float:
        """log_a below which a gate is closed at test time."""
        return self.shape.soft_closing if self.variant.soft else 0.0

    def expected(self) -> Tensor:
        """[G]: P(g != 0) of every gate; the sum is the expected number of heads."""
        return self.shape.nonzero(self.logits_G)

    def penalty(self) -> Tensor:
        """The expected number of open heads, or heads per attention module, as the variant says."""
        total = self.expected().sum()
        return total / len({head.site for head in self.heads}) if self.variant.by_site else total

    def probabilities(self) -> dict[str, HeadGrid]:
        """P(g = 0) and P(g = 1) of every gated head."""
        log_a_G = self.logits_G.detach().double()
        values = {"zero": self.shape.zero(log_a_G), "one": self.shape.one(log_a_G)}
        return {name: HeadGrid(list(zip(self.heads, shares.tolist(), strict=True))) for name, shares in values.items()}


@contextmanager
def gated(
    model: nn.Module,
    *,
    kinds: Sequence[str] | None = None,
    heads: HeadNames | None = None,
    variant: str = "default",
    gates: HardConcreteGates | None = None,
    seed: int = 0,
) -> Iterator[HardConcreteGates]:
    """Attach trainable gates to the heads of a model inside the block, and remove them after it.

    In training mode every forward pass samples new gates; in eval mode gates have their test-time values.

        with hc.gated(model, kinds=("encoder",)) as gates:
            optimizer = Adam([{"params": model.parameters()}, {"params": gates.parameters(), "lr": 0.02}])
            loss = model(**batch).loss + 0.01 * gates.penalty()
            ...
        small = hc.remove(model, gates.mask())

    Args:
        model: The model.
        kinds: Kinds of attention to gate. By default all.
        heads: Names of the heads to gate. By default all heads of these kinds.
        variant: "default", "paper" or "voita2019-code". Gates of the last are soft at test time; `hc.fold_gates`
            multiplies them into the weights before heads are removed.
        gates: Gates of an earlier block to continue with, instead of the arguments above.
        seed: Random seed of the samples, and of the initial values of "voita2019-code".

    Yields:
        The gates: `parameters()` to train, `penalty()` to add to the loss, `mask()` of the open heads.
    """
    if gates is not None and (kinds is not None or heads is not None or variant != "default"):
        raise UsageError("gates= already sets kinds, heads and variant: leave those arguments out.")
    if gates is None:
        gates = HardConcreteGates(model, kinds=kinds, heads=heads, variant=variant, seed=seed)
    with attached(model, gates):
        yield gates
