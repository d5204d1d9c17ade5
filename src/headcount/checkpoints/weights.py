"""Checks that a checkpoint has exactly the weights of its model: missing weights would be random, and unused weights of
layers belong to another computation.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping

from torch import nn
from transformers import PreTrainedModel

from headcount.checkpoints.classes import remedy, saved_class_name
from headcount.errors import CheckpointError

# Weights that a caller may allow to be random: none, the head on top of the model's body, or all outside its layers.
NEW_WEIGHTS = ("head", "any")

# Replaces masked frames in training, unused in eval mode: published checkpoints often lack it.
_FOR_TRAINING = re.compile(r"(^|\.)masked_spec_embed$")
# Constants that earlier releases of transformers saved with each layer: causal masks and rotary frequencies.
_OLD_CONSTANTS = re.compile(r"(attn|attention)\.(masked_)?bias$|(^|\.)rotary_emb\.inv_freq$|(^|\.)position_ids$")


def missing_weights(report: Mapping[str, Iterable[str]]) -> list[str]:
    """The weights that are random after loading, according to transformers: missing, or of another size."""
    mismatched = [key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]]
    return sorted(key for key in {*report["missing_keys"], *mismatched} if not _FOR_TRAINING.search(key))


def lacks_pooler_only(model: PreTrainedModel, missing: Collection[str]) -> bool:
    """Whether a checkpoint lacks only the pooler of a body, and the body works without it."""
    optional = "add_pooling_layer" in inspect.signature(type(model).__init__).parameters
    return optional and bool(missing) and all(key.split(".")[0] == "pooler" for key in missing)


def check_weights(
    name: str, model: PreTrainedModel, report: Mapping[str, Iterable[str]], *, new_weights: str | None, task: str | None
) -> None:
    """Raise if the model would have random weights that were not allowed, or lack some of its layers.

    new_weights: weights that may be random, one of NEW_WEIGHTS; None: no weights.
    """
    missing = missing_weights(report)
    layers = _layer_lists(model)
    in_layers = [key for key in missing if _is_below(key, layers)]
    if in_layers:
        raise CheckpointError(
            f"{name} is damaged: {_listed(in_layers, 'missing')}, which would be initialised at random."
        )
    if new_weights != "any":
        lost = [key for key in missing if new_weights is None or not _is_head(model, key)]
        if lost:
            raise CheckpointError(_random(name, model, lost, new_weights, task))
    prefix = f"{model.base_model_prefix}."
    bare = [path.removeprefix(prefix) for path in layers]
    extra = [
        key
        for key in sorted(report["unexpected_keys"])
        if _is_below(key.removeprefix(prefix), bare) and not _OLD_CONSTANTS.search(key)
    ]
    if extra:
        raise CheckpointError(
            f"{name} has {_listed(extra, 'left over')} in its layers that a model of its config.json does not have: "
            "config.json and the weights are from different models."
        )


def _random(name: str, model: PreTrainedModel, lost: list[str], new_weights: str | None, task: str | None) -> str:
    """An error message on missing weights, with advice."""
    saved, loaded = saved_class_name(model.config), type(model).__name__
    says = f"{name} lacks {_listed(lost, '')} of {loaded}: random values, and random results. "
    if new_weights == "head" or saved == loaded:
        return f'{says}The checkpoint is incomplete; hc.load(..., new_weights="any") is for training them anew.'
    origin = f"It was saved from {saved}. " if saved else ""
    return f"{says}{origin}{remedy(task, name)}"


def _layer_lists(model: PreTrainedModel) -> list[str]:
    """The paths of the lists of layers in the model's body, each with a dot at its end."""
    body = model.base_model
    prefix = next(path for path, module in model.named_modules() if module is body)
    paths = [path for path, module in body.named_modules() if isinstance(module, nn.ModuleList)]
    return [f"{prefix}.{path}." if prefix else f"{path}." for path in paths]


def _is_below(key: str, paths: Collection[str]) -> bool:
    return any(key.startswith(path) for path in paths)


def _is_head(model: PreTrainedModel, key: str) -> bool:
    """Whether a weight is on top of the body: outside it, its pooler, or the output embedding."""
    outside = model.base_model is not model and not key.startswith(f"{model.base_model_prefix}.")
    owner = model.get_submodule(key.rpartition(".")[0])
    return outside or "pooler" in key.split(".") or owner is model.get_output_embeddings()


def _listed(keys: list[str], state: str) -> str:
    names = ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")
    what = f"{len(keys)} {'weights' if len(keys) > 1 else 'weight'}"
    return f"{what} {state} ({names})" if state else f"{what} ({names})"
