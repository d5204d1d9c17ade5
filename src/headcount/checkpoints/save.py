"""save: write a model to a folder atomically, so that load returns it bit for bit."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount import journal
from headcount.checkpoints.export_list import is_export
from headcount.checkpoints.folder import CONFIG, weight_files
from headcount.checkpoints.pretrained import save_pretrained
from headcount.checkpoints.push import push
from headcount.checkpoints.replaced import outlives
from headcount.checkpoints.standalone import MODULE, PER_LAYER, write_standalone
from headcount.checkpoints.stock import stock_form
from headcount.errors import CheckpointError, UsageError, check_type
from headcount.hooks import original_module
from headcount.surgery.manifest import is_stale, note


def save(
    model: nn.Module,
    folder: str | os.PathLike[str],
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    standalone: bool = False,
    overwrite: bool = False,
    keep_companions: bool = True,
    max_shard_size: str = "5GB",
    add_files: Callable[[Path], object] | None = None,
    push_to: str | None = None,
    beside_files: bool = False,
) -> Path:
    """Write a model, plain or pruned, as safetensors and JSON.

    The config of a pruned model lists its heads, and stock `from_pretrained` refuses the folder. If every layer keeps
    equally many heads and the architecture can express that, the folder is a stock checkpoint instead.

    Args:
        model: The model.
        folder: Folder to write.
        tokenizer: Tokenizer to save with the model.
        standalone: Add code with which `from_pretrained(..., trust_remote_code=True)` loads the model without
            headcount.
        overwrite: Replace an existing checkpoint, with its record and model card if headcount wrote them. Other files
            in the folder are kept.
        keep_companions: Keep the tokenizer, processor and sentence-transformers files of a checkpoint that is replaced
            by a model without any. A new tokenizer replaces all of them.
        max_shard_size: Largest size of one weight file.
        add_files: Function that writes further files into the new folder before it gets its name.
        push_to: Repository on the Hugging Face Hub, user/name, to upload the folder to.
        beside_files: Write into a folder with files that are no checkpoint too. They are kept.

    Returns:
        The path of the folder.

    Raises:
        CheckpointError: If the folder is not empty, or cannot be written.
    """
    model = original_module(model)
    refuse_adapters(model)
    if not isinstance(model, PreTrainedModel):
        raise UsageError(
            f"save expects a Hugging Face model (or one returned by hc.remove); got {type(model).__name__}."
        )
    check_type("folder", folder, (str, os.PathLike), "the path of a folder")
    _check_weights(model)
    target = Path(folder).resolve()
    check_target(target, overwrite, beside_files=beside_files)
    _refresh(model)
    stock = stock_form(model)

    def stays(old: Path) -> bool:
        return not _is_checkpoint(target) or outlives(old, fresh, keep_companions=keep_companions)

    with journal.new_folder(target, carry_over=stays) as fresh:
        if stock is None:
            # transformers does not rename old weight names for custom code: it needs the current names.
            save_pretrained(model, fresh, max_shard_size=max_shard_size, save_original_format=not standalone)
            if standalone:
                write_standalone(model, fresh)
        else:
            config, weights = stock
            save_pretrained(model, fresh, state_dict=weights, max_shard_size=max_shard_size)
            config.save_pretrained(fresh)
        if tokenizer is not None:
            tokenizer.save_pretrained(fresh)
        if add_files is not None:
            add_files(fresh)
    if push_to is not None:
        push(target, push_to)
    return target


def _check_weights(model: PreTrainedModel) -> None:
    """Raise if weights are elsewhere: `save_pretrained` collects those that a device_map offloaded, and no others."""
    if hasattr(model, "hf_device_map") or not any(parameter.is_meta for parameter in model.parameters()):
        return
    raise CheckpointError(
        f"Weights of {type(model).__name__} are on the meta device and cannot be saved. If accelerate offloaded them "
        "(cpu_offload, disk_offload), bring them back: accelerate.hooks.remove_hook_from_submodules(model), then "
        "model.tie_weights(). Otherwise load the model from a checkpoint with hc.load."
    )


def refuse_adapters(model: nn.Module) -> None:
    """Raise if a model has adapters of PEFT: `save_pretrained` would write them alone, or weights under other names."""
    adapted = [name for name, module in model.named_modules() if hasattr(module, "base_layer")]
    if not (adapted or hasattr(model, "merge_and_unload") or getattr(model, "_hf_peft_config_loaded", False)):
        return
    example = f", such as that of {adapted[0]}" if adapted else ""
    raise UsageError(
        f"{type(model).__name__} is a model with adapters (PEFT){example}; its files have none. Use the model that "
        "merge_and_unload() of the PeftModel returns. After model.add_adapter(...), call "
        "model.save_pretrained(ADAPTER) and peft.PeftModel.from_pretrained(WHOLE_MODEL, ADAPTER).merge_and_unload()."
    )


def _refresh(model: PreTrainedModel) -> None:
    """Update the config: parts may be pruned separately, come from a standalone checkpoint, or be new."""
    stale = is_stale(model)
    if stale:
        _separate_config(model)
    config = model.config
    if any(MODULE in str(reference) for reference in (getattr(config, "auto_map", None) or {}).values()):
        del config.auto_map  # its code is written only on request
        for name in PER_LAYER:
            vars(config).pop(name, None)
        if getattr(config, "is_heterogeneous", False):
            config.per_layer_config = None
    if stale or any(hasattr(module, "headcount") for module in model.modules()):
        note(model)


def _separate_config(model: PreTrainedModel) -> None:
    """Give a model a copy of its config, which the pruned model that it was made for has too."""
    shared = model.config
    copied = copy.deepcopy(shared)
    for module in model.modules():
        if getattr(module, "config", None) is shared:
            module.config = copied


def check_target(target: Path, overwrite: bool, *, beside_files: bool = False) -> None:
    """Raise if `save` would refuse to write. Call it before long work."""
    if target.is_file():
        raise CheckpointError(f"{target} is a file; give the name of a folder to write.")
    journal.check_place(target)
    journal.recover(target.resolve())
    if not journal.contents(target):
        return
    if not _is_checkpoint(target):
        if beside_files:
            return
        raise CheckpointError(
            f"{target} contains files that are not a checkpoint; nothing was overwritten. Give another folder."
        )
    if not overwrite:
        raise CheckpointError(
            f"{target} is not empty; pass overwrite=True (--overwrite) to replace the checkpoint in it."
        )
    refuse_training_run(target)


def _is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a model or an export: other programs have a config.json too."""
    return (folder / CONFIG).is_file() and (bool(weight_files(folder)) or is_export(folder))


def refuse_training_run(folder: Path) -> None:
    """Raise if a folder has the state of a training run, which would take the new model for its own result."""
    if (folder / "training" / "settings.json").is_file():
        raise UsageError(
            f"{folder} is the folder of a training run: with its state in {folder / 'training'}, the command that "
            "began it would take the new model for its result, or replace it. Give another folder, or move that one "
            "away."
        )
