"""load: a model from a folder or the hub, plain or pruned.

Reads safetensors and JSON only, and runs no code that comes with a model unless asked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from headcount.checkpoints.companions import check_place
from headcount.errors import CheckpointError, HeadcountError, UnknownName
from headcount.sites.locate import locate
from headcount.surgery.manifest import KEY, check, rebuild

TASKS = {
    "translation": "AutoModelForSeq2SeqLM",
    "classification": "AutoModelForSequenceClassification",
    "language-modelling": "AutoModelForCausalLM",
    "masked-language-modelling": "AutoModelForMaskedLM",
    "embedding": "AutoModel",
}
Model = TypeVar("Model", bound=type[PreTrainedModel])


def load(
    source: str | os.PathLike[str],
    *,
    task: str | None = None,
    model_class: type[PreTrainedModel] | None = None,
    classes: Sequence[str] | None = None,
    dtype: torch.dtype | str | None = None,
    device_map: Any = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> PreTrainedModel:
    """A model in eval mode from a folder or a hub id, plain or pruned by headcount.

    task: one of `TASKS`, such as "classification" or "masked-language-modelling", chooses the model's head; None takes
        the class the checkpoint was saved from.
    model_class: the class itself, for classes that are not part of transformers.
    classes: names of the classes of a new classifier, for fine-tuning; its weights are random where the checkpoint
        has none of that size.
    options: further options of `from_pretrained`, such as `revision` or `attn_implementation`.
    """
    if task is not None and task not in TASKS:
        raise UnknownName("task", task, TASKS)
    name = os.fspath(source)
    _check_folder(name)
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code, **_hub_options(options))
        if classes is not None:
            config.id2label = dict(enumerate(classes))  # which makes num_labels
            config.label2id = {name: number for number, name in enumerate(classes)}
            options["ignore_mismatched_sizes"] = True
        manifest = getattr(config, KEY, None)
        chosen: Any = model_class or _model_class(config, task, name, trust_remote_code)
        pruned = manifest is not None and bool(check(manifest))
        loader = pruned_class(chosen) if pruned else chosen
        if pruned and chosen is transformers.AutoModel:
            raise CheckpointError(f"{name} is pruned; its class must be known to rebuild it. Pass model_class=.")
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
        nowhere = "" if Path(name).exists() else f"There is no folder {name} here, and as a hub id: "
        raise CheckpointError(f"{nowhere}Cannot load {name}: {_first_lines(error)}") from error
    mismatched = [key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]]
    _check_missing(name, model, [*map(str, report["missing_keys"]), *mismatched])
    if pruned:
        model.__class__ = chosen  # the subclass was needed for building only
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
    if architecture is None:
        return transformers.AutoModel
    if hasattr(transformers, architecture):
        return getattr(transformers, architecture)
    own_code = [key for key in getattr(config, "auto_map", None) or {} if key.startswith("AutoModel")]
    if not own_code:
        raise CheckpointError(
            f"{name} was saved from the class {architecture}, which transformers lacks. Pass model_class=."
        )
    if not trust_remote_code:
        raise CheckpointError(
            f"{name} needs code of its own ({architecture}). Look at it, then pass trust_remote_code=True."
        )
    return getattr(transformers, own_code[0])


def _check_folder(name: str) -> None:
    """Clear words for the common mistakes with local folders, and no way out of the folder for hostile ones."""
    folder = Path(name)
    check_place(name)
    if not folder.exists():
        return
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


def _check_missing(name: str, model: PreTrainedModel, missing: list[str]) -> None:
    """Weights that the files lack are random now: allowed in a new head, never in a layer that has attention heads."""
    if not missing:
        return
    layers = [re.match(r"(?:.*?\.)?\d+\.", site.path) for site in locate(model)]  # up to the layer's number
    lost = [key for key in missing if any(layer and key.startswith(layer[0]) for layer in layers)]
    if lost:
        shown = ", ".join(lost[:3])
        raise CheckpointError(
            f"{name} is damaged: {len(lost)} weights are missing ({shown} ...). They would be random."
        )


def _hub_options(options: dict[str, Any]) -> dict[str, Any]:
    names = ("revision", "token", "cache_dir", "local_files_only", "subfolder", "force_download")
    return {name: options[name] for name in names if name in options}


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__
