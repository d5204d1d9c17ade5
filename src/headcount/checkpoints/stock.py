"""Stock form: a pruned model that a plain config can describe, so that stock transformers loads it."""

from __future__ import annotations

import copy

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.sites.locate import families, locate
from headcount.sites.site import Sites
from headcount.surgery.adapters import ConfigView
from headcount.surgery.manifest import KEY, digest

_T5_BIAS = "relative_attention_bias.weight"


def stock_form(model: PreTrainedModel) -> tuple[PreTrainedConfig, dict[str, Tensor]] | None:
    """Config and weights of the model for stock code; None if the architecture cannot express its shape."""
    manifest = getattr(model.config, KEY, None)
    if manifest is None:
        return None
    sites = locate(model)
    if all(site.heads == site.built for site in sites):  # the config has this shape already
        return None
    config = _config(model, sites)
    if config is None:
        return None
    weights = _weights(model, sites)
    if weights is None or not _builds(model, config, weights):
        return None
    entries = {name: {**entry, "built": entry["heads"]} for name, entry in manifest["sites"].items()}
    setattr(config, KEY, {**manifest, "digest": digest(entries, sites), "sites": entries})
    return config, weights


def is_stock(model: PreTrainedModel) -> bool:
    """Whether `save` writes a checkpoint that stock code loads."""
    return all(site.heads == site.built for site in locate(model)) or stock_form(model) is not None


def unpruned(model: PreTrainedModel, config: PreTrainedConfig) -> PreTrainedModel:
    """The model that stock code builds from a config, without weights."""
    with torch.device("meta"):
        twin: PreTrainedModel = getattr(transformers, type(model).__name__)(copy.deepcopy(config))
    return twin


def _config(model: PreTrainedModel, sites: Sites) -> PreTrainedConfig | None:
    """The config with fewer heads, if all sites have equally many and the family defines the config entries."""
    names = {site.family for site in sites}
    shapes = {(site.num_heads, site.kv_heads, site.head_dim) for site in sites}
    if len(names) != 1 or len(shapes) != 1 or "generic" in names:
        return None
    stock = families[names.pop()].stock
    heads, kv_heads, head_dim = shapes.pop()
    views = [view for site in sites if isinstance(view := getattr(site.module, "config", None), ConfigView)]
    if stock is None or heads == 0 or any(view.gathers for view in views):
        return None
    values = {name: value for name, value in zip(stock, (heads, kv_heads, head_dim), strict=True) if name}
    data = copy.deepcopy(model.config).to_dict()
    data.pop(KEY, None)
    try:
        config = type(model.config)(**{**data, **values})
    except Exception:  # configs reject numbers in different ways (Llama: heads must divide the width)
        return None
    config._attn_implementation = model.config._attn_implementation
    config.architectures, config.dtype = [type(model).__name__], model.dtype  # as `save_pretrained` states them
    return config


def _weights(model: PreTrainedModel, sites: Sites) -> dict[str, Tensor] | None:
    """The model's weights, with a position bias shared by all layers sliced; None if layers keep different heads."""
    weights = model.state_dict()
    if not any(site.attention.shared_bias for site in sites):
        return weights
    if len({site.heads for site in sites}) > 1:
        return None
    heads = [sites[0].built.index(head) for head in sites[0].heads]
    return {
        name: tensor[:, heads].contiguous() if name.endswith(_T5_BIAS) else tensor for name, tensor in weights.items()
    }


def _builds(model: PreTrainedModel, config: PreTrainedConfig, weights: dict[str, Tensor]) -> bool:
    """Whether stock code with this config expects exactly these weights."""
    try:
        twin = unpruned(model, config)
    except Exception:  # as above: any error means that stock code cannot express this shape
        return False
    return {name: tensor.shape for name, tensor in twin.state_dict().items()} == {
        name: tensor.shape for name, tensor in weights.items()
    }
