"""load: a model from a folder or the hub, plain or pruned.

Reads safetensors and JSON only, and runs no code that comes with a model unless asked.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from headcount.errors import CheckpointError, HeadcountError, UnknownName
from headcount.surgery.manifest import KEY, check, rebuild

TASKS = {
    "translation": "AutoModelForSeq2SeqLM",
    "classification": "AutoModelForSequenceClassification",
    "language-modelling": "AutoModelForCausalLM",
}
Model = TypeVar("Model", bound=type[PreTrainedModel])


def load(
    source: str | os.PathLike[str],
    *,
    task: str | None = None,
    dtype: torch.dtype | str | None = None,
    device_map: Any = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> PreTrainedModel:
    """A model in eval mode from a folder or a hub id, plain or pruned by headcount.

    task: "translation", "classification" or "language-modelling" chooses the model's head; None takes the class
        the checkpoint was saved from.
    options: further options of `from_pretrained`, such as `revision` or `attn_implementation`.
    """
    if task is not None and task not in TASKS:
        raise UnknownName("task", task, TASKS)
    name = os.fspath(source)
    _check_folder(name)
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code, **_hub_options(options))
        manifest = getattr(config, KEY, None)
        model_class = _model_class(config, task, name, trust_remote_code)
        pruned = manifest is not None and bool(check(manifest))
        loader = pruned_class(model_class) if pruned else model_class
        given = {"dtype": dtype, "device_map": device_map}
        model, report = loader.from_pretrained(
            name,
            config=config,
            use_safetensors=True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            **{key: value for key, value in given.items() if value is not None},
            **options,
        )
    except HeadcountError:
        raise
    except Exception as error:  # a damaged or hostile folder makes transformers fail in any way
        raise CheckpointError(f"Cannot load {name}: {_first_lines(error)}") from error
    same_class = type(model).__name__ in (config.architectures or [])
    _check_report(name, report, strict=pruned or same_class)
    model.eval()
    return model


@cache
def pruned_class(model_class: Model) -> Model:
    """The same class, built at the smaller size its config's manifest states.

    Loading then is transformers' own: meta initialisation, dtype, shards, devices and tied weights all work.
    """

    class Pruned(model_class):  # type: ignore[valid-type, misc]
        def __init__(self, config: PreTrainedConfig, *args: Any, **kwargs: Any) -> None:
            super().__init__(config, *args, **kwargs)
            rebuild(self, getattr(config, KEY))

    # transformers writes the class name into config.json and reads the class's module for its attention backends
    Pruned.__name__, Pruned.__qualname__, Pruned.__module__ = (
        model_class.__name__,
        model_class.__qualname__,
        model_class.__module__,
    )
    return Pruned  # type: ignore[return-value]


def _model_class(config: PreTrainedConfig, task: str | None, name: str, trust_remote_code: bool) -> Any:
    if task is not None:
        automatic = getattr(transformers, TASKS[task])
        if type(config) not in automatic._model_mapping:
            raise CheckpointError(
                f"{name} is a {config.model_type} model; transformers has none of that type for {task}."
            )
        found = automatic._model_mapping[type(config)]
        return found[0] if isinstance(found, tuple | list) else found
    architecture = (config.architectures or [None])[0]
    found = getattr(transformers, architecture, None) if architecture else None
    if found is not None:
        return found
    if not trust_remote_code and getattr(config, "auto_map", None):
        raise CheckpointError(
            f"{name} needs code of its own ({architecture}); look at it, then pass trust_remote_code=True."
        )
    return transformers.AutoModel


def _check_folder(name: str) -> None:
    """Clear words for the common mistakes with local folders, and no way out of the folder for hostile ones."""
    folder = Path(name)
    looks_local = name.startswith((".", "/", "~")) or name.count("/") > 1 or (os.sep != "/" and os.sep in name)
    if not folder.exists():
        if looks_local:
            raise CheckpointError(
                f"There is no folder {name}. Give a folder with config.json and *.safetensors, or a hub id."
            )
        return
    if not folder.is_dir():
        raise CheckpointError(f"{name} is a file. Give the folder that holds config.json and *.safetensors.")
    config = folder / "config.json"
    if not config.is_file():
        raise CheckpointError(f"{name} has no config.json: it is not a checkpoint folder.")
    if not isinstance(_json(config), dict):
        raise CheckpointError(f"{config} is not a JSON object.")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        _check_index(folder, _json(index))
    elif not (folder / "model.safetensors").is_file():
        raise CheckpointError(
            f"{name} has no model.safetensors. Weights in other formats are not read: convert them first."
        )


def _check_index(folder: Path, index: Any) -> None:
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
        raise CheckpointError(f"{folder}/model.safetensors.index.json has no weight_map from names to files.")
    for file in set(files.values()):
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise CheckpointError(
                f"The weight index of {folder} points to {file!r}; only *.safetensors beside it are read."
            )
        if not (folder / file).is_file():
            raise CheckpointError(f"{folder} lacks {file}, which its weight index names: the checkpoint is incomplete.")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(f"{path} is not readable JSON: {error}.") from error


def _check_report(name: str, report: dict[str, Any], *, strict: bool) -> None:
    """Weights that the file lacks would be random: never for the class that was saved."""
    problems = {
        what: sorted(str(key) for key in report.get(what, ()))
        for what in ("missing_keys", "unexpected_keys", "mismatched_keys")
    }
    if strict and (problems["missing_keys"] or problems["mismatched_keys"]):
        what = "missing_keys" if problems["missing_keys"] else "mismatched_keys"
        shown = ", ".join(problems[what][:3])
        raise CheckpointError(
            f"{name} is damaged: {len(problems[what])} weights are {what.split('_')[0]} ({shown} ...). "
            "They would have been random."
        )


def _hub_options(options: dict[str, Any]) -> dict[str, Any]:
    names = ("revision", "token", "cache_dir", "local_files_only", "subfolder", "force_download")
    return {name: options[name] for name in names if name in options}


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__
