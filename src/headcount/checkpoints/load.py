"""load: load a model, plain or pruned, from a folder or the hub.

Reads safetensors and JSON only, and runs no code that comes with a model unless asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from headcount.checkpoints.classes import (
    TASKS,
    check_direction,
    check_task,
    code_needed,
    custom_classes,
    saved_class,
    task_class,
)
from headcount.checkpoints.folder import check_config, check_source, check_weight_files
from headcount.checkpoints.weights import NEW_WEIGHTS, check_weights, lacks_pooler_only, missing_weights
from headcount.errors import CheckpointError, HeadcountError, ModelError, UnknownName, check_type
from headcount.sites.inputs import position_limit
from headcount.surgery.manifest import KEY, check, rebuild

Model = TypeVar("Model", bound=type[PreTrainedModel])


def load(
    source: str | os.PathLike[str],
    *,
    task: str | None = None,
    model_class: type[PreTrainedModel] | None = None,
    classes: Sequence[str] | None = None,
    new_weights: str | None = None,
    dtype: torch.dtype | str | None = None,
    device_map: object = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> PreTrainedModel:
    """Load a model in eval mode from a folder or hub id, plain or pruned by headcount.

    Raises an error if the checkpoint lacks weights, which would be random, unless `classes` or `new_weights` allows it.

    Args:
        source: Folder or hub id of a checkpoint.
        task: One of `TASKS`, such as "classification" or "masked-language-modelling". It selects the model class. By
            default the class that the checkpoint was saved from.
        model_class: Model class, for classes that are not part of transformers.
        classes: Class names of a new classifier to fine-tune. Its output layer is random if the checkpoint has none of
            that size.
        new_weights: Weights that may be random because you train them: "head" for those on top of the model's body,
            "any" for all outside its layers.
        dtype: Data type of the weights. By default that of the checkpoint.
        device_map: Devices to place the model on, as in `from_pretrained`.
        trust_remote_code: Whether code in the checkpoint may run.
        options: Further options of `from_pretrained`, such as `revision` or `attn_implementation`.

    Returns:
        The model, an instance of its transformers class.

    Raises:
        CheckpointError: If the folder is not a valid checkpoint or lacks weights.
        UsageError: If an argument is not valid.
    """
    if task is not None and task not in TASKS:
        raise UnknownName("task", task, TASKS)
    if new_weights is not None and new_weights not in NEW_WEIGHTS:
        raise UnknownName("value of new_weights", str(new_weights), NEW_WEIGHTS)
    check_type("source", source, (str, os.PathLike), "the folder or hub id of a model, such as 'gpt2'")
    name = os.fspath(source)
    check_source(name)
    check_weight_files(name)
    optional = {"dtype": dtype, "device_map": device_map}
    options |= {key: value for key, value in optional.items() if value is not None}
    options["trust_remote_code"] = trust_remote_code
    if classes is not None:
        new_weights = new_weights or "head"
        options["ignore_mismatched_sizes"] = True
    with _clear_errors(name):
        config = _config(name, classes, options)
        loader = model_class or (
            task_class(config, task, name, trust_remote_code) if task else saved_class(config, name, trust_remote_code)
        )
        if task and not (model_class or new_weights):
            check_task(config, task, name)
        model, report = _from_pretrained(loader, name, config, options)
        if new_weights is None and lacks_pooler_only(model, missing_weights(report)):
            model, report = _from_pretrained(loader, name, config, {**options, "add_pooling_layer": False})
    check_weights(name, model, report, new_weights=new_weights, task=task)
    if task == "language-modelling" and model_class is None:
        check_direction(model, name)
    return model.eval()


@contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Turn any error inside the block into a CheckpointError that names the model."""
    try:
        yield
    except CheckpointError as error:
        raise error if name in str(error) else CheckpointError(f"{name}: {error}") from error
    except ModelError as error:
        raise type(error)(f"{name}: {error}") from error
    except HeadcountError:
        raise
    except Exception as error:  # a damaged or hostile folder makes transformers fail in any way
        nowhere = "" if Path(name).exists() else f"There is no folder {name} here, and as a hub id: "
        raise CheckpointError(f"{nowhere}Cannot load {name}: {_first_lines(error)}") from error


def _config(name: str, classes: Sequence[str] | None, options: Mapping[str, object]) -> PreTrainedConfig:
    """The config of a checkpoint, with the classes of a new classifier."""
    of_config = (
        "trust_remote_code", "revision", "token", "cache_dir", "local_files_only", "subfolder", "force_download",
    )  # fmt: skip
    config: PreTrainedConfig = AutoConfig.from_pretrained(
        name, **{option: options[option] for option in of_config if option in options}
    )
    if classes is not None:
        config.id2label = dict(enumerate(classes))  # this also sets num_labels
        config.label2id = {label: number for number, label in enumerate(classes)}
    return config


def _from_pretrained(
    model_class: Any, name: str, config: PreTrainedConfig, options: dict[str, Any]
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The model, rebuilt if its config has a manifest, and the loading report of transformers."""
    manifest = getattr(config, KEY, None)
    pruned = manifest is not None and bool(check(manifest))
    if pruned and model_class is transformers.AutoModel:
        raise CheckpointError(f"{name} is a pruned model and its config does not name its class. Pass model_class=.")
    if pruned and hasattr(model_class, "from_config"):  # an Auto class, for code in the checkpoint
        if not options["trust_remote_code"]:
            raise code_needed(config, name)
        revision = {"revision": options["revision"]} if "revision" in options else {}
        model_class = get_class_from_dynamic_module(config.auto_map[model_class.__name__], name, **revision)
    loader = pruned_class(model_class) if pruned else model_class
    try:
        model, report = loader.from_pretrained(
            name, config=config, use_safetensors=True, output_loading_info=True, **options
        )
    except Exception as error:
        if custom_classes(config) and not options["trust_remote_code"]:
            raise code_needed(config, name) from error
        raise
    if pruned:
        model.__class__ = model_class  # the subclass was needed for building only
    return model, report


def text_limit(source: str, *, task: str, trust_remote_code: bool = False, **options: Any) -> int | None:
    """Longest text in tokens, read without the weights; None if there is no limit.

    options: as in `load`; only those that locate the config are used.
    """
    check_source(source)
    check_config(source)
    with _clear_errors(source):
        config = _config(source, None, {**options, "trust_remote_code": trust_remote_code})
        with torch.device("meta"):
            model_class = task_class(config, task, source, trust_remote_code)
            if hasattr(model_class, "from_config"):  # an Auto class, for code in the checkpoint
                return position_limit(model_class.from_config(config, trust_remote_code=trust_remote_code))
            return position_limit(model_class(config))


@cache
def pruned_class(model_class: Model) -> Model:
    """The same class, built in the smaller size that the manifest in its config states.

    Loading is then done by transformers: meta initialisation, dtype, shards, devices and tied weights all work.
    """

    class Pruned(model_class):  # type: ignore[valid-type, misc]
        def __init__(self, config: PreTrainedConfig, *args: Any, **kwargs: Any) -> None:
            super().__init__(config, *args, **kwargs)
            rebuild(self, getattr(config, KEY))

    # transformers writes the class name into config.json and reads the class's module for its attention backends
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(Pruned, name, getattr(model_class, name))
    return Pruned  # type: ignore[return-value]


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__
