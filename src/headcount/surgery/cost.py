"""cost: parameters, FLOPs and cache of a model, by kind of attention. Measures one run; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache, PreTrainedConfig

from headcount.errors import ModelError, UsageError
from headcount.hooks import config_of, configured_module, original_module
from headcount.record.results.inspect import Cost, KindCost
from headcount.sites.inputs import example_batch, longest
from headcount.sites.locate import locate
from headcount.sites.projection import relative_path, width_in, width_out
from headcount.sites.running import eager_attention, eager_experts, evaluating, run
from headcount.sites.site import Site, SiteKey
from headcount.tasks.batch import first_example, token_count

_TIED = "all_tied_weights_keys"  # of a transformers model: name of a parameter -> name of the one it is tied to


def cost(model: nn.Module, *, length: int = 128, batch: Mapping[str, Tensor] | None = None) -> Cost:
    """Count parameters, FLOPs of one forward pass over one example, and bytes of key/value cache.

    Args:
        model: The model.
        length: Number of tokens of the synthetic example.
        batch: Batch with an example to count on instead: the first, with its own length.

    Returns:
        The counts of the whole model and of its heads by kind.
    """
    if length < 1:
        raise UsageError(f"length (tokens) must be at least 1; got {length}.")
    model = original_module(model)
    sites, length = locate(model), longest(model, length)
    if batch is not None:
        batch = first_example(batch)
        length = token_count(batch) or length
    counts = _flops(model, length, batch)
    kinds = {}
    for kind in sites.kinds:
        of_kind = [site for site in sites if site.kind == kind]
        kinds[kind] = KindCost(
            num_heads=sum(site.num_heads for site in of_kind),
            parameters=sum(site_parameters(site) for site in of_kind),
            flops=sum(_operations(site, counts) for site in of_kind) if counts else None,
        )
    return Cost(
        length=length,
        parameters=parameter_count(model),
        flops=counts.get(""),
        cache_bytes=cache_bytes(model, length),
        kinds=kinds,
    )


def site_flops(model: nn.Module, *, length: int) -> dict[SiteKey, int]:
    """FLOPs of each site in one forward pass over one synthetic example; empty if the model does not run on it."""
    counts = _flops(model, length, None)
    return {site.key: _operations(site, counts) for site in locate(model)} if counts else {}


def cache_bytes(model: nn.Module, length: int) -> int:
    """Bytes of keys and values held after `length` tokens of one example. Nothing runs."""
    model = original_module(model)
    return sum(_cache_bytes(site, length, _window(model, site)) for site in locate(model))


def parameter_count(model: nn.Module) -> int:
    """Parameters of a model. Tied ones count once, also if they are offloaded: each then has a tensor of its own."""
    inner = configured_module(model)
    tied = [(inner.get_parameter(a), inner.get_parameter(b)) for a, b in getattr(inner, _TIED, {}).items()]
    copies = {id(copy) for copy, source in tied if copy is not source and (copy.is_meta or source.is_meta)}
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in copies)


def site_parameters(site: Site) -> int:
    """Parameters of a site's module, and of its output projection if that is outside the module."""
    inside = sum(parameter.numel() for parameter in site.module.parameters() if parameter.dim() > 0)
    return inside + (sum(p.numel() for p in site.output.parameters()) if site.attention.output.startswith("..") else 0)


def head_parameters(site: Site) -> int:
    """Parameters removed with a single head; a key/value head shared with other heads is kept."""
    if not site.num_heads:
        return 0
    columns = site.head_dim * width_out(site.output)
    shared = site.kv_heads < site.num_heads
    rows = 0
    for name, roles in site.attention.projections.items():
        projection = getattr(site.module, name)
        per_row = width_in(projection) + (getattr(projection, "bias", None) is not None)
        rows += per_row * site.head_dim * (roles.count("q") if shared else len(roles))
    for name in site.attention.extra:
        if hasattr(site.module, name):
            projection = getattr(site.module, name)
            rows += site.head_dim * (width_in(projection) + (projection.bias is not None))
    return rows + columns


def _flops(model: nn.Module, length: int, batch: Mapping[str, Tensor] | None) -> dict[str, int]:
    """Module path -> operations of one forward pass over one example; "" is the whole model; empty if it cannot run."""
    synthetic = batch is None
    try:
        batch = example_batch(model, batch=1, length=length, target=length, padded=False) if batch is None else batch
        # Eager attention and experts are plain matrix products, which the counter knows on every device. The default
        # of experts, torch's grouped_mm, counts as 0.
        with (
            evaluating(model), eager_attention(model), eager_experts(model), FlopCounterMode(display=False) as counter
        ):  # fmt: skip
            run(model, batch, synthetic=synthetic)
    except ModelError:
        return {}
    root = type(model).__name__
    totals = {name: sum(operations.values()) for name, operations in counter.get_flop_counts().items()}
    return {name.removeprefix(root).removeprefix("."): total for name, total in totals.items() if name.startswith(root)}


def _operations(site: Site, counts: Mapping[str, int]) -> int:
    """Operations of a site's module, and of its output projection if that is outside the module."""
    outside = [relative_path(site.path, site.attention.output)] if site.attention.output.startswith("..") else []
    return sum(counts.get(path, 0) for path in (site.path, *outside))


def _window(model: nn.Module, site: Site) -> int | None:
    """Tokens that a layer's attention reaches back to, itself included, according to its cache; None if to all."""
    config = config_of(model)
    if site.kind != "decoder" or not isinstance(config, PreTrainedConfig):
        return None
    layers, index = DynamicCache(config=config).layers, getattr(site.module, "layer_idx", None)
    return getattr(layers[index], "sliding_window", None) if index is not None and index < len(layers) else None


def _cache_bytes(site: Site, length: int, window: int | None) -> int:
    """Keys and values held after `length` tokens of one example; attention of an encoder is never cached."""
    if site.kind not in ("decoder", "cross"):
        return 0
    if window is not None:
        length = min(length, window - 1)  # the token to come is the last of its window
    size = next(site.output.parameters()).element_size()
    return 2 * length * max(1, site.kv_heads * site.head_dim) * size  # an empty site still counts its tokens
