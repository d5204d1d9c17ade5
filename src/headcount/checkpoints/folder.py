"""Checks of a checkpoint folder before it is loaded: its path, JSON files, links and weight files.

Knows files, not models. Names that may be hub ids pass.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from headcount.errors import CheckpointError

CONFIG, INDEX, WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
MODULES = "modules.json"  # of sentence-transformers: the modules after the Transformer, each in a folder
_ADAPTER = "adapter_config.json"
GENERATION = "generation_config.json"
_MOST_NESTED = 100  # levels of JSON; the configs of transformers have about five
_MOST_LAYERS = 256  # accepted without checking the weights; the deepest model of the hub has 126
_LONGEST_NAME = 255  # bytes of the name of a file
_MOST_LABELS = 1_000_000  # transformers creates a name for each
WEIGHT_PATTERNS = (WEIGHTS, INDEX, "model-?????-of-?????.safetensors")  # of `is_weight_file`, for the hub
_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")  # as save_pretrained names them
_ANY_WEIGHTS = re.compile(r"model.*\.safetensors|pytorch_model.*\.bin")  # also of formats that are not read
_COUNTS_LAYERS = re.compile(r"layers?$|hidden_groups$|inner_group_num$")


def check_source(name: str) -> None:
    """Raise if a local folder does not exist, or if its files cannot be trusted."""
    folder = Path(name)
    looks_local = name.startswith((".", "/", "~")) or name.count("/") > 1 or (os.sep != "/" and os.sep in name)
    if not folder.exists() and looks_local:
        raise CheckpointError(
            f"There is no folder {name}. Give a folder with config.json and *.safetensors, or a hub id."
        )
    if folder.is_file():
        raise CheckpointError(f"{name} is a file. Give the folder that holds config.json and *.safetensors.")
    if not folder.exists():
        return
    _check_links(folder)
    check_settings_files(name, (CONFIG, GENERATION))  # transformers ignores a damaged generation_config.json


def check_config(name: str) -> None:
    """Raise if a local folder has no config: it is not of a model."""
    folder = Path(name)
    if (folder / _ADAPTER).is_file() and not (folder / CONFIG).is_file():
        raise CheckpointError(
            f"{name} is an adapter (PEFT), not a model. Load it with its model by peft, then save the result of "
            "merge_and_unload(), and its tokenizer, in a folder of their own."
        )
    if folder.exists() and not (folder / CONFIG).is_file():
        raise CheckpointError(
            f"{name} has no config.json: it is not a checkpoint folder. Give a folder written by save_pretrained."
        )


def check_weight_files(name: str) -> None:
    """Raise if a local folder lacks the config or weights, or if its index points outside the folder."""
    folder = Path(name)
    if not folder.exists():
        return
    check_config(name)
    if (folder / INDEX).is_file():
        _indexed_files(folder)
    elif not (folder / WEIGHTS).is_file():
        raise CheckpointError(
            f"{name} has no model.safetensors. Only safetensors weights are read: convert other formats first."
        )
    _check_number_of_layers(folder)


def is_weight_file(path: Path) -> bool:
    """Whether a file has the name of the weights of a model, or of their index."""
    return path.name == INDEX or bool(_WEIGHTS.fullmatch(path.name))


def weight_files(folder: Path) -> set[str]:
    """Names of the files in a folder that are weights of a model, also those that are not read."""
    return {path.name for path in folder.iterdir() if _ANY_WEIGHTS.fullmatch(path.name)}


def check_settings_files(name: str, files: Iterable[str]) -> None:
    """Raise, with file and reason, if one of these JSON files of a local folder cannot be read."""
    for path in (Path(name) / file for file in files):
        if path.is_file():
            _check_settings(path)


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises CheckpointError with its name if it is damaged or malicious."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: also not UTF-8, long integers
        raise CheckpointError(f"{path} is not readable JSON: {error}.") from error
    level: list[Any] = [content]
    for _ in range(_MOST_NESTED):
        level = [child for value in level for child in _children(value)]
        if not level:
            return content
    raise CheckpointError(f"{path} is not readable JSON: it is nested deeper than {_MOST_NESTED} levels.")


def _children(value: object) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check_settings(path: Path) -> None:
    content = read_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} is not a JSON object.")
    if path.name == CONFIG:
        _check_names(path, content)
    labels = content.get("num_labels")
    if path.name == CONFIG and isinstance(labels, int | float) and labels > _MOST_LABELS:
        raise CheckpointError(f"{path} declares {labels:,.0f} labels; at most {_MOST_LABELS:,} are supported.")


def _check_names(path: Path, settings: dict[str, Any]) -> None:
    """Raise if the model's class or its class names have another type than transformers writes."""
    classes, labels = settings.get("architectures"), settings.get("id2label")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise CheckpointError(f"architectures in {path} is {classes!r:.100}; expected a list of class names.")
    if labels is not None and not (isinstance(labels, dict) and all(number.isdecimal() for number in labels)):
        raise CheckpointError(f"id2label in {path} is {labels!r:.100}; expected a mapping from class numbers to names.")


def _check_links(folder: Path) -> None:
    """Raise at a link to a file elsewhere: the files of a model are copied into the folders of models made from it."""
    templates = folder / "additional_chat_templates"  # the only folder that tokenizers read files from
    for path in (*folder.iterdir(), *templates.glob("*")):
        if path.is_symlink() and (path == templates or not path.is_dir()):
            _check_inside(folder, path)
    if (folder / MODULES).is_file():
        for name in module_folders(folder / MODULES):
            for path in (folder / name).glob("*"):
                _check_inside(folder, path)


def module_folders(file: Path) -> list[str]:
    """Names of the folders in a modules.json; the Transformer itself is beside the file and has none."""
    modules = read_json(file)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise CheckpointError(f"{file} is not a list of modules, as sentence-transformers writes it.")
    names = [module.get("path", "") for module in modules]
    for name in names:
        if not isinstance(name, str) or (name and (Path(name).name != name or name == "..")):
            raise CheckpointError(f"{file} names the folder {name!r:.100}; modules must be folders beside the file.")
    return [name for name in names if name]


def _check_inside(folder: Path, path: Path) -> None:
    """Raise if a path in a model's folder leads elsewhere by a link, its own or that of a folder on the way.

    The hub's cache keeps its files as links from models--NAME/snapshots/COMMIT into models--NAME/blobs.
    """
    home = folder.resolve()
    allowed = [home, *([home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [])]
    target = path.resolve()
    if not any(target.is_relative_to(root) for root in allowed):
        raise CheckpointError(
            f"{path} is a link to {target}, outside the model's folder. Copy the file into the folder "
            "if it belongs to the model, or delete the link."
        )


def _indexed_files(folder: Path) -> list[Path]:
    """The weight files in a folder's index. Raises if one is missing."""
    index = read_json(folder / INDEX)
    names = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise CheckpointError(f"{folder / INDEX} has no weight_map from names to files.")
    for name in set(names.values()):
        is_name = Path(name).name == name and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME
        if not is_name or not name.endswith(".safetensors"):
            raise CheckpointError(
                f"The weight index of {folder} points to {name!r:.300}; only *.safetensors in the same folder are read."
            )
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} is incomplete: its weight index names {name}, which is missing.")
    return [folder / name for name in sorted(set(names.values()))]


def _check_number_of_layers(folder: Path) -> None:
    """Raise if the config has far more layers than the weights: building them would take too long."""
    stated = max(_layer_counts(read_json(folder / CONFIG)), default=0)
    if stated <= _MOST_LAYERS:
        return  # missing weights are reported after loading
    files = _indexed_files(folder) if (folder / INDEX).is_file() else [folder / WEIGHTS]
    stored = max(map(_stored_layers, files))
    if stated > stored:
        raise CheckpointError(
            f"{folder / CONFIG} declares {stated:,.0f} layers, but the weights in the same folder have {stored}: "
            "they are from different models."
        )


def _layer_counts(settings: object) -> Iterator[float]:
    """All numbers of layers in a config and in the configs of its parts."""
    if not isinstance(settings, dict):
        return
    for name, value in settings.items():
        if isinstance(value, int | float) and _COUNTS_LAYERS.search(name):
            yield value
        yield from _layer_counts(value)


def _stored_layers(path: Path) -> int:
    """The length of the longest list of layers in a weight file, read from its header."""
    try:
        with safe_open(path, framework="numpy") as weights:
            keys = weights.keys()
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"Cannot load {path}: {error}.") from error
    return max((int(number) for key in keys for number in re.findall(r"(?:^|\.)(\d{1,9})(?=\.)", key)), default=-1) + 1
