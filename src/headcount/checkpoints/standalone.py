"""Standalone checkpoints: the code that rebuilds a pruned model travels inside its folder."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import transformers
from transformers import PreTrainedModel

from headcount import journal
from headcount.checkpoints.classes import automatic_classes
from headcount.errors import CheckpointError
from headcount.sites.locate import locate
from headcount.surgery.manifest import KEY, json_hash
from headcount.surgery.plan import plan_site

_TRAVELS = ("slicing.py", "adapters.py", "reshape.py")
MODULE = "modeling_headcount"
FILES = (f"{MODULE}.py", *_TRAVELS)
_TEMPLATE = '''"""{name} with some attention heads removed. Written by headcount for transformers {version}."""

import json
from hashlib import sha256

from transformers import {name} as Original

from .reshape import reshape

PLAN = "{digest}"


class {name}(Original):
    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        plan = config.{key}["plan"]
        if sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest() != PLAN:
            raise ValueError("config.json does not have the plan of heads that it was written with: restore it.")
        reshape(self, plan)
'''


def write_standalone(model: PreTrainedModel, folder: Path) -> None:
    """Add to a folder what `from_pretrained(folder, trust_remote_code=True)` needs to load it without headcount."""
    manifest = getattr(model.config, KEY, None)
    if manifest is None:
        raise CheckpointError("This model lost no heads: any transformers loads it, it needs no code of its own.")
    name = type(model).__name__
    automatic = automatic_classes(type(model.config), name)
    if not automatic:
        raise CheckpointError(f"No Auto class of transformers leads to {name}, so it cannot be exported standalone.")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    plan = [plan_site(site, list(site.heads)) for site in locate(model) if site.heads != site.built]
    config[KEY] = {**manifest, "plan": plan}
    config["auto_map"] = dict.fromkeys(automatic, f"{MODULE}.{name}")
    journal.write_json(path, config)
    code = _TEMPLATE.format(name=name, version=transformers.__version__, key=KEY, digest=json_hash(plan))
    journal.write_text(folder / f"{MODULE}.py", code)
    for file in _TRAVELS:
        journal.write_text(folder / file, files("headcount.surgery").joinpath(file).read_text(encoding="utf-8"))
