"""Mean head outputs over a set of batches: they replace masked heads under mean replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError, check_list, check_type
from headcount.probes.inputs import inputs_of
from headcount.probes.padding import real_tokens
from headcount.probes.taps import tapped
from headcount.sites.running import evaluating
from headcount.sites.site import Site


def mean_outputs(
    model: nn.Module,
    batches: Iterable[Mapping[str, object]],
    *,
    run: Callable[[nn.Module, Mapping[str, Any]], Any] | None = None,
) -> dict[tuple[str, int], Tensor]:
    """Average the output of each head over all tokens that are not padding, in float64.

    Args:
        model: The model.
        batches: Batches of calibration data.
        run: Function that runs the model on a batch. By default the batch is passed as keyword arguments.

    Returns:
        Means [heads, head size] of each site, by (kind, layer); `hc.masked(..., replace=means)` takes them.
    """
    check_list("batches", batches, "batches, such as task.batches()")
    sums: dict[tuple[str, int], Tensor] = {}
    tokens: dict[tuple[str, int], float] = {}

    def add(site: Site, context_BTHD: Tensor) -> None:
        real_BT = real_tokens(model, site, context_BTHD, inputs.now)
        total_HD = (context_BTHD.double() * real_BT[..., None, None]).flatten(0, -3).sum(0)
        sums[site.key] = sums.get(site.key, torch.zeros_like(total_HD)) + total_HD
        tokens[site.key] = tokens.get(site.key, 0.0) + float(real_BT.sum())

    with evaluating(model), inputs_of(model) as inputs, tapped(model, "outputs", sink=add):
        for batch in batches:
            inputs.begin(batch)
            if run is None:
                check_type("A batch", batch, Mapping, "a dict of the arguments of the model, such as input_ids")
                model(**batch)
            else:
                run(model, batch)
    if not sums:
        raise UsageError("The calibration set is empty: mean outputs need at least one batch.")
    return {key: total_HD / tokens[key] for key, total_HD in sums.items()}
