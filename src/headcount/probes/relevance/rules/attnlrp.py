"""attnlrp: as `ding`, but relevance also flows into attention weights (Achtibat et al. 2024).

Softmax by its first-order expansion, whose constant absorbs its share; products, of matrices too, half to each side.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from headcount.probes.relevance.carry import Half, Taylor
from headcount.probes.relevance.rules.ding import Ding
from headcount.probes.relevance.rules.rule import Bias


class AttnLRP(Ding):
    name = "attnlrp"
    biases: ClassVar[tuple[Bias, ...]] = ("absorb",)

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        return Taylor.apply(x, self.account.scale(), dim)

    def matrix_product(self, a: Tensor, b: Tensor) -> Tensor:
        return Half.apply(a @ b)


RULE = AttnLRP
