"""Runs: how often each site of a model runs. Some do not on given data, as the image tower of a model on texts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import nn

from headcount.errors import UsageError
from headcount.hooks import Hooks
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site, SiteKey


@contextmanager
def site_runs(model: nn.Module) -> Iterator[Counter[SiteKey]]:
    """How often each site runs inside the block."""
    runs: Counter[SiteKey] = Counter()
    with Hooks(model) as hooks:
        for site in locate(model):
            hooks.see_call(site.entry, partial(runs.update, [site.key]))
        yield runs


def warn_of_idle(model: nn.Module, runs: Mapping[SiteKey, float]) -> None:
    """Warn of sites with heads that did not run, whose heads have no value."""
    idle = _idle(locate(model), runs)
    if idle:
        warnings.warn(
            f"{_in_words(model, idle)}: their heads have no value (NaN). {_advice(model, idle)}", stacklevel=4
        )


def check_running(
    model: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    run: Callable[[nn.Module, Mapping[str, Any]], Any],
    kinds: Collection[str] | None = None,
) -> None:
    """Raise if sites of these kinds run on none of the batches. Stops at the batch after which all have run.

    run: function that runs the model on a batch.
    """
    sites = [site for site in locate(model) if kinds is None or site.kind in kinds]
    idle = sites
    with evaluating(model), site_runs(model) as runs:
        for batch in batches:
            run(model, batch)
            idle = _idle(sites, runs)
            if not idle:
                return
    if runs:  # else there was nothing to run on, which has an error of its own
        raise UsageError(f"{_in_words(model, idle)}, so that they cannot be chosen among. {_advice(model, idle)}")


def _idle(sites: Iterable[Site], runs: Mapping[SiteKey, float]) -> list[Site]:
    return [site for site in sites if site.num_heads and not runs.get(site.key)]


def _in_words(model: nn.Module, idle: Sequence[Site]) -> str:
    names = ", ".join(site.name for site in idle[:3])
    more = f" and {len(idle) - 3} more" if len(idle) > 3 else ""
    return f"{names}{more} of {type(model).__name__} did not run on the data"


def _advice(model: nn.Module, idle: Sequence[Site]) -> str:
    silent = {site.kind for site in idle}
    ran = tuple(kind for kind in locate(model).kinds if kind not in silent)
    advice = f"Choose among the kinds that did, kinds={ran}, or use" if ran else "Use"
    return f"{advice} data that every kind of attention runs on."
