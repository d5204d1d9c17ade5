"""Projections: run a model with other output projections at some sites.

Shapes: O outputs, K = heads of a site now x head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError
from headcount.hooks import Hooks
from headcount.sites.locate import locate
from headcount.sites.projection import width_in, width_out
from headcount.sites.site import Site, SiteKey


@dataclass(frozen=True)
class Projection:
    """An output projection: from the concatenated heads of a site to its output."""

    weight_OK: Tensor
    bias_O: Tensor | None

    @classmethod
    def of(cls, site: Site) -> Projection:
        """The projection of a site, in float64."""
        weight: Tensor = site.output.weight  # type: ignore[assignment]
        bias: Tensor | None = site.output.bias  # type: ignore[assignment]
        rows_OK = weight.T if isinstance(site.output, Conv1D) else weight
        return cls(rows_OK.detach().double(), None if bias is None else bias.detach().double())


@contextmanager
def projected(model: nn.Module, projections: Mapping[SiteKey, Projection]) -> Iterator[None]:
    """Use these output projections instead of the model's inside the block. Columns of zeros mask a head."""
    sites = locate(model)
    with Hooks() as hooks:
        for key, projection in projections.items():
            site = sites[key]
            expected = [width_out(site.output), width_in(site.output)]
            if list(projection.weight_OK.shape) != expected:
                raise UsageError(
                    f"The output projection of {site.name} is {expected}; got {list(projection.weight_OK.shape)}."
                )
            hooks.replace(site.output, _linear(site, projection))
        yield


def _linear(site: Site, projection: Projection) -> Callable[[Tensor], Tensor]:
    like: Tensor = site.output.weight  # type: ignore[assignment]
    weight_OK = projection.weight_OK.to(like)
    bias_O = None if projection.bias_O is None else projection.bias_O.to(like)
    return lambda context: nn.functional.linear(context, weight_OK, bias_O)
