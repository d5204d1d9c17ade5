"""Standalone checkpoints: folders that contain the code for rebuilding the pruned model."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import transformers
from torch import nn
from transformers import PreTrainedModel

from headcount import journal
from headcount.checkpoints.classes import automatic_classes
from headcount.errors import CheckpointError
from headcount.sites.locate import locate
from headcount.sites.site import Sites
from headcount.surgery.manifest import KEY, json_hash
from headcount.surgery.plan import has_added_bias, plan_site

_TRAVELS = ("slicing.py", "adapters.py", "reshape.py")
MODULE = "modeling_headcount"
FILES = (f"{MODULE}.py", *_TRAVELS)
_TEMPLATE = '''"""{name} with some attention heads removed. Written by headcount for transformers {version}."""

import json
from hashlib import sha256

import transformers
from transformers import {name} as Original

from .reshape import reshape

PLAN = "{digest}"


def checked_plan(config):
    plan = config.{key}["plan"]
    if sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest() != PLAN:
        raise ValueError("config.json does not have the plan of heads that it was written with: restore it.")
    return plan


class {name}(Original):
    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        reshape(self, checked_plan(config))
'''
# vLLM builds the body with AutoModel, but the paths of the plan start at the whole model.
_BODY_TEMPLATE = """

class {body}(transformers.{body}):
    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        plan = [dict(site) for site in checked_plan(config)]
        for site in plan:
            site.update({{name: site[name].removeprefix("{prefix}.") for name in ("path", "output")}})
        reshape(self, plan)
"""


def loading_classes(model: nn.Module) -> list[str]:
    """The Auto classes that load this model. Raises if there are none: code of its own cannot be part of ours."""
    name, config = type(model).__name__, getattr(model, "config", None)
    automatic = automatic_classes(type(config), name) if config is not None and hasattr(transformers, name) else []
    if not automatic:
        raise CheckpointError(
            f"No Auto class of transformers loads {name}, so it cannot be exported standalone. Load it with hc.load."
        )
    return automatic


def write_standalone(model: PreTrainedModel, folder: Path) -> None:
    """Add the code with which `from_pretrained(folder, trust_remote_code=True)` loads it without headcount."""
    manifest = getattr(model.config, KEY, None)
    if manifest is None:
        raise CheckpointError(
            "No heads were removed from this model: transformers loads it as it is, so standalone code is not needed."
        )
    name, automatic = type(model).__name__, loading_classes(model)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    plan = [plan_site(site, list(site.heads)) for site in locate(model) if site.heads != site.built]
    config[KEY] = {**manifest, "plan": plan}
    config["auto_map"] = dict.fromkeys(automatic, f"{MODULE}.{name}")
    code = _TEMPLATE.format(name=name, version=transformers.__version__, key=KEY, digest=json_hash(plan))
    sites = locate(model)
    if "AutoModelForCausalLM" in automatic and {site.family for site in sites} == {"llama"}:
        body = type(model.base_model).__name__
        config["auto_map"]["AutoModel"] = f"{MODULE}.{body}"
        config |= _per_layer(sites)
        code += _BODY_TEMPLATE.format(body=body, prefix=model.base_model_prefix)
    journal.write_json(path, config)
    journal.write_text(folder / f"{MODULE}.py", code)
    for file in _TRAVELS:
        journal.write_text(folder / file, files("headcount.surgery").joinpath(file).read_text(encoding="utf-8"))


PER_LAYER = ("per_layer_config", "allow_global_per_layer_attribute_access")


def _per_layer(sites: Sites) -> dict[str, Any]:
    """The heads of each layer for the Transformers backend of vLLM; empty if it could not run them."""
    if any(len(set(site.served)) != 1 or has_added_bias(site) for site in sites):  # no heads, or groups of other sizes
        return {}
    layers = {
        str(site.layer): {"num_attention_heads": site.num_heads, "num_key_value_heads": site.kv_heads} for site in sites
    }
    return {**dict(zip(PER_LAYER, (layers, True), strict=True)), "head_dim": sites[0].head_dim}
