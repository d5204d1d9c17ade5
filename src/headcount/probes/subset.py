"""Subset gates: exactly k of the heads, softly (differentiable subset pruning; Li, Cotterell, Sachan 2021).

r = w + Gumbel noise; k times: p = softmax(r / t), mask += p, r += log(1 - p): top-k without replacement, relaxed.
Shapes: G gated heads, K heads to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from headcount.probes.gates import Gates, groups
from headcount.sites.site import HeadNames

_DRAWS = 512
_TINY = torch.finfo(torch.float32).tiny  # instead of 0, because log 0 has NaN gradients


def relaxed_subset(scores_G: Tensor, keep: int, temperature: float) -> Tensor:
    """[G]: numbers that sum to `keep`; the k largest scores are 1 and the others 0 as the temperature falls to 0."""
    scores_G, mask_G = scores_G / temperature, torch.zeros_like(scores_G)
    for number in range(keep):
        taken_G = torch.softmax(scores_G, -1)
        mask_G = mask_G + taken_G
        if number < keep - 1:
            scores_G = scores_G + torch.log((1 - taken_G).clamp_min(_TINY)) / temperature
    return mask_G


def top(scores_G: Tensor, keep: int) -> Tensor:
    """[G]: 1 for the `keep` largest values; the first of equal ones."""
    order = torch.argsort(scores_G, descending=True, stable=True)
    return torch.zeros_like(scores_G).index_fill(0, order[:keep], 1.0)


class SubsetGates(Gates):
    """Gates that are open for exactly a given number of heads, of all gated ones or of each group."""

    def __init__(
        self,
        model: nn.Module,
        *,
        keep: int | Mapping[str, int],
        kinds: Sequence[str] | None = None,
        heads: HeadNames | None = None,
        straight_through: bool = False,
    ) -> None:
        """keep: how many of the gated heads, or of each kind. straight_through: gates are 0 or 1, gradients relaxed."""
        super().__init__(model, kinds=kinds, heads=heads)
        self.groups = groups(self.heads, keep)
        self.straight_through = straight_through
        self.temperature = 1.0
        self.logits_G = nn.Parameter(torch.zeros(len(self.heads)))

    def relaxed(self, uniform_G: Tensor) -> Tensor:
        scores_G = self.logits_G - torch.log(-torch.log(uniform_G))
        return self._in_groups(scores_G, self._soft)

    def _soft(self, scores_G: Tensor, keep: int) -> Tensor:
        soft_G = relaxed_subset(scores_G, keep, self.temperature)
        return top(scores_G.detach(), keep) + soft_G - soft_G.detach() if self.straight_through else soft_G

    def chosen(self) -> Tensor:
        return self._in_groups(self.logits_G.detach(), top)

    def mean(self) -> Tensor:
        """How often each head is among the largest, over fixed samples of the noise."""
        generator = torch.Generator().manual_seed(0)
        uniform_NG = torch.rand(_DRAWS, len(self.heads), generator=generator).clamp(1e-6, 1 - 1e-6).to(self.logits_G)
        scores_NG = self.logits_G.detach() - torch.log(-torch.log(uniform_NG))
        mean_G = torch.empty_like(scores_NG[0])
        for group in self.groups:
            kept_NK = scores_NG[:, group.places].topk(group.keep, -1).indices
            mean_G[group.places] = torch.nn.functional.one_hot(kept_NK, len(group.places)).sum(1).to(mean_G).mean(0)
        return mean_G

    def _in_groups(self, scores_G: Tensor, function: Callable[[Tensor, int], Tensor]) -> Tensor:
        if len(self.groups) == 1:
            return function(scores_G, self.groups[0].keep)
        found_G = torch.zeros_like(scores_G)
        for group in self.groups:
            places = torch.tensor(group.places, device=scores_G.device)
            found_G = found_G.index_put((places,), function(scores_G[places], group.keep))
        return found_G
