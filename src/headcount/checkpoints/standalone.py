"""Standalone checkpoints: the code that rebuilds a pruned model travels inside its folder."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import transformers
from transformers import PreTrainedModel

from headcount import journal
from headcount.errors import CheckpointError
from headcount.sites.locate import locate
from headcount.surgery.manifest import KEY
from headcount.surgery.plan import plan_site

_TRAVELS = ("slicing.py", "adapters.py", "reshape.py")
MODULE = "modeling_headcount"
FILES = (f"{MODULE}.py", *_TRAVELS)
_TEMPLATE = '''"""{name} with some attention heads removed. Written by headcount for transformers {version}."""

from transformers import {name} as Original

from .reshape import reshape


class {name}(Original):
    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        reshape(self, config.{key}["plan"])
'''


def write_standalone(model: PreTrainedModel, folder: Path) -> None:
    """Add to a folder what `from_pretrained(folder, trust_remote_code=True)` needs to load it without headcount."""
    manifest = getattr(model.config, KEY, None)
    if manifest is None:
        raise CheckpointError("This model lost no heads: any transformers loads it, it needs no code of its own.")
    name = type(model).__name__
    automatic = _automatic_classes(model)
    if not automatic:
        raise CheckpointError(f"No Auto class of transformers leads to {name}, so it cannot be exported standalone.")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config[KEY] = {
        **manifest,
        "plan": [plan_site(site, list(site.heads)) for site in locate(model) if site.heads != site.built],
    }
    config["auto_map"] = dict.fromkeys(automatic, f"{MODULE}.{name}")
    journal.write_json(path, config)
    code = _TEMPLATE.format(name=name, version=transformers.__version__, key=KEY)
    journal.write_text(folder / f"{MODULE}.py", code)
    for file in _TRAVELS:
        journal.write_text(folder / file, files("headcount.surgery").joinpath(file).read_text(encoding="utf-8"))


def _automatic_classes(model: PreTrainedModel) -> list[str]:
    """The Auto classes that give this class for this config."""
    found = []
    for name in dir(transformers):
        mapping = (
            getattr(getattr(transformers, name, None), "_model_mapping", None) if name.startswith("AutoModel") else None
        )
        if mapping is None or type(model.config) not in mapping:
            continue
        classes = mapping[type(model.config)]
        if type(model).__name__ in {c.__name__ for c in (classes if isinstance(classes, tuple | list) else (classes,))}:
            found.append(name)
    return found
