"""Pooling: how the states of a text's tokens become its embedding, as the files of Sentence Transformers state it.

Shapes: B batch, T tokens, D width of the model.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.hooks import config_of, configured_module

MEAN = "mean"
_NAMES = {
    "pooling_mode_mean_tokens": MEAN,
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
_MODES = {"mean": MEAN, "cls": "first", "lasttoken": "last", "max": "max"}  # newer files have one key
_FOLLOWED = ("Transformer", "Pooling", "Normalize", "Dropout")  # the last two change no cosine


def pooling_of(model: nn.Module) -> str:
    """The pooling that the folder of a model states; the mean if it states none, or one that is not supported."""
    name = getattr(config_of(model), "_name_or_path", "")
    modules = _modules(str(name)) if name else []
    changes = _changes_of_texts(str(name)) if name else []
    if changes:
        warnings.warn(
            f"{type(configured_module(model)).__name__} from {name} reads texts changed by {' and '.join(changes)}. "
            "headcount does not do this: change the texts of --data so, or distances are those of other inputs.",
            stacklevel=3,
        )
    further = [kind for kind, _ in modules if kind not in _FOLLOWED]
    if further:
        warnings.warn(
            f"{type(configured_module(model)).__name__} from {name} has further modules ({', '.join(further)}), which "
            "headcount does not run: distances are those of the pooled states of tokens, not of its embeddings.",
            stacklevel=3,
        )
    settings = _settings(str(name), modules)
    if settings is None:
        return MEAN
    modes = [mode for key, mode in _NAMES.items() if settings.get(key)]
    modes += [_MODES.get(str(settings["pooling_mode"]), "")] if "pooling_mode" in settings else []
    unsupported = [key for key in settings if key.startswith("pooling_mode_") and settings[key] and key not in _NAMES]
    if len(modes) == 1 and modes[0] and not unsupported:
        return modes[0]
    warnings.warn(
        f"{type(configured_module(model)).__name__} from {name} pools its tokens in a way that headcount does not "
        "support: its embeddings are taken as the mean over tokens.",
        stacklevel=3,
    )
    return MEAN


def token_limit(model: nn.Module) -> int | None:
    """Longest text in tokens that the folder of a model states for embeddings; None if it states none."""
    name = getattr(config_of(model), "_name_or_path", "")
    settings = _read(str(name), "sentence_bert_config.json") if name else None
    limit = settings.get("max_seq_length") if isinstance(settings, dict) else None
    return limit if isinstance(limit, int) and limit > 0 else None


def _changes_of_texts(name: str) -> list[str]:
    """What Sentence Transformers does to every text before it is split into tokens."""
    general, text = (_read(name, file) for file in ("config_sentence_transformers.json", "sentence_bert_config.json"))
    general, text = (settings if isinstance(settings, dict) else {} for settings in (general, text))
    prompts = general.get("prompts")
    prompt = prompts.get(general.get("default_prompt_name")) if isinstance(prompts, dict) else None
    changes = [f"the prompt {prompt!r}"] if prompt else []
    return changes + (["lower case"] if text.get("do_lower_case") else [])


def _modules(name: str) -> list[tuple[str, str]]:
    """Kind and path of each module of Sentence Transformers in a folder or hub model."""
    listed = _read(name, "modules.json")
    modules = [module for module in listed if isinstance(module, dict)] if isinstance(listed, list) else []
    return [(str(module.get("type", "")).rpartition(".")[2], str(module.get("path", ""))) for module in modules]


def _settings(name: str, modules: list[tuple[str, str]]) -> dict[str, object] | None:
    """The config of the pooling module; None if there is none."""
    paths = [path for kind, path in modules if kind == "Pooling"]
    settings = _read(name, f"{paths[0]}/config.json") if paths else None
    return settings if isinstance(settings, dict) else None


def _read(name: str, file: str) -> Any:
    """A JSON file of a folder, or of a hub model in the cache; None if there is none."""
    path = Path(name) / file
    if not Path(name).is_dir():
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(name, file) if name.count("/") <= 1 else None
        path = Path(cached) if isinstance(cached, str) else path
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def pool(pooling: str, states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, D]: the embeddings of texts. mask_BT: 1 for tokens, 0 for padding."""
    return _POOLINGS[pooling](states_BTD, mask_BT)


def _mean(states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    real_BT1 = mask_BT[..., None].to(states_BTD.dtype)
    return (states_BTD * real_BT1).sum(1) / real_BT1.sum(1).clamp_min(1)


def _first(states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    return states_BTD[torch.arange(len(states_BTD)), mask_BT.long().argmax(1)]


def _last(states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    position_BT = mask_BT.long() * torch.arange(1, 1 + mask_BT.shape[1], device=mask_BT.device)
    return states_BTD[torch.arange(len(states_BTD)), position_BT.argmax(1)]


def _max(states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    return states_BTD.masked_fill(mask_BT[..., None] == 0, -torch.inf).amax(1)


_POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {MEAN: _mean, "first": _first, "last": _last, "max": _max}
