"""Model classes of transformers: which class a checkpoint is loaded as, and its task. Reads no weights."""

from __future__ import annotations

import re
import warnings
from typing import Any

import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.errors import CheckpointError
from headcount.sites.causality import is_causal

TASKS = {
    "translation": "AutoModelForSeq2SeqLM",
    "classification": "AutoModelForSequenceClassification",
    "language-modelling": "AutoModelForCausalLM",
    "masked-language-modelling": "AutoModelForMaskedLM",
    "embedding": "AutoModel",
}


def task_class(config: PreTrainedConfig, task: str, name: str, trust_remote_code: bool = False) -> Any:
    """The class for a task and the model type of a config, or that of the code in the checkpoint, if it is trusted.

    Warns if the checkpoint was saved from a class that transformers does not have, which may compute something else.
    """
    if trust_remote_code and TASKS[task] in custom_classes(config):
        return getattr(transformers, TASKS[task])
    mapping = getattr(transformers, TASKS[task])._model_mapping
    if type(config) not in mapping:
        raise CheckpointError(
            f"{name} is a {config.model_type} model; transformers has none of that type for {task}. "
            f"Give a model for {task}, or a task that this model is for."
        )
    if custom_classes(config) and not trust_remote_code:
        raise code_needed(config, name)
    architecture = saved_class_name(config)
    choices = _classes(mapping, type(config))
    encoders = transformers.AutoModelForTextEncoding._model_mapping
    if task == "embedding" and type(config) in encoders:  # T5EncoderModel: sentence-t5 has no decoder
        choices += _classes(encoders, type(config))
    stock_class = next((choice for choice in choices if choice.__name__ == architecture), choices[0])
    if architecture is not None and not hasattr(transformers, architecture):
        warnings.warn(
            f"{name} was saved from the class {architecture}, which transformers does not have, and is loaded as "
            f"{stock_class.__name__}: if {architecture} computes anything else, results are of another model. In "
            "Python, pass model_class= to hc.load.",
            stacklevel=3,
        )
    return stock_class


def saved_class(config: PreTrainedConfig, name: str, trust_remote_code: bool) -> Any:
    """The class that a checkpoint was saved from; AutoModel if its config does not say."""
    architecture = saved_class_name(config)
    if architecture is None:
        return transformers.AutoModel
    if hasattr(transformers, architecture):
        return getattr(transformers, architecture)
    custom = custom_classes(config)
    if not custom:
        raise CheckpointError(
            f"{name} was saved from the class {architecture}, which transformers does not have. Pass model_class=."
        )
    if not trust_remote_code:
        raise code_needed(config, name)
    matching = [automatic for automatic in custom if str(config.auto_map[automatic]).rpartition(".")[2] == architecture]
    return getattr(transformers, (matching or custom)[0])


def custom_classes(config: PreTrainedConfig) -> list[str]:
    """The Auto classes that code in the checkpoint extends; none if transformers has the class it was saved from."""
    architecture = saved_class_name(config)
    if architecture is None or hasattr(transformers, architecture):
        return []
    return [name for name in getattr(config, "auto_map", None) or {} if name.startswith("AutoModel")]


def code_needed(config: PreTrainedConfig, name: str) -> CheckpointError:
    """The error for a checkpoint that only the code in it can load."""
    return CheckpointError(
        f"{name} needs custom code ({saved_class_name(config)}). Review that code, then pass trust_remote_code=True "
        "(--trust-remote-code)."
    )


def saved_class_name(config: PreTrainedConfig) -> str | None:
    """The name of the class that a checkpoint was saved from; None if its config does not say."""
    architecture = (config.architectures or [None])[0]
    return None if architecture is None else str(architecture)


def check_task(config: PreTrainedConfig, task: str, name: str) -> None:
    """Raise if a checkpoint was saved from a class for another task.

    A body without a head passes: missing weights are found when the weights are read.
    """
    architecture = saved_class_name(config)
    purposes = automatic_classes(type(config), architecture) if architecture else []
    if not purposes or TASKS[task] in purposes or "AutoModel" in (*purposes, TASKS[task]):
        return
    tasks = [candidate for candidate, automatic in TASKS.items() if automatic in purposes]
    raise CheckpointError(
        f"{name} was saved from {architecture}, which is for {tasks[0] if tasks else _in_words(purposes)}, not for "
        f"{task}. {remedy(task, name)}"
    )


def check_direction(model: PreTrainedModel, name: str) -> None:
    """Raise if a language model attends to the tokens it predicts."""
    if not is_causal(model):
        raise CheckpointError(
            f"{name} attends in both directions, so that as a language model ({type(model).__name__}) it would see the "
            "tokens it predicts. Choose a decoder, or set is_decoder to true in its config.json and fine-tune it."
        )


def remedy(task: str | None, name: str) -> str:
    """Advice for a checkpoint without a trained head for a task."""
    if task in ("classification", "language-modelling"):
        fine_tune = f"Fine-tune it first (headcount train {name} --task {task} --data DATA --out DIR), or load it"
    else:
        fine_tune = "Load it"
    return f'{fine_tune} with hc.load(..., new_weights="head") for a training loop of your own.'


def automatic_classes(config_class: type[PreTrainedConfig], class_name: str) -> list[str]:
    """The Auto classes of transformers that return this class for this type of config."""
    names = []
    for name in transformers.__all__:
        automatic = getattr(transformers, name) if name.startswith("AutoModel") else None
        mapping = getattr(automatic, "_model_mapping", None)
        if mapping is None or config_class not in mapping:
            continue
        if class_name in {choice.__name__ for choice in _classes(mapping, config_class)}:
            names.append(name)
    return names


def _classes(mapping: Any, config_class: type[PreTrainedConfig]) -> tuple[Any, ...]:
    classes = mapping[config_class]
    return tuple(classes) if isinstance(classes, tuple | list) else (classes,)


def _in_words(automatic: list[str]) -> str:
    """AutoModelForMaskedLM, AutoModelForPreTraining -> masked language modelling."""
    name = sorted(automatic, key=lambda name: name == "AutoModelForPreTraining")[0].removeprefix("AutoModelFor")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return re.sub(r"\blm\b", "language modelling", words)
