"""Objective: which task a checkpoint was made for, read from the class in its config. No weights are read."""

from __future__ import annotations

from typing import NamedTuple

import transformers
from transformers import PreTrainedConfig

from headcount.checkpoints.classes import saved_class_name
from headcount.checkpoints.companions import load_config

# The end of a class's name, and its task.
_ENDINGS = {
    "ForMaskedLM": "masked-language-modelling",
    "ForCausalLM": "language-modelling",
    "LMHeadModel": "language-modelling",
    "ForSequenceClassification": "classification",
    "ForConditionalGeneration": "translation",
    "MTModel": "translation",
}
# Saved with the head of masked language modelling and a second head.
_PRETRAINING = ("BertForPreTraining", "AlbertForPreTraining", "MobileBertForPreTraining", "BigBirdForPreTraining")


class Objective(NamedTuple):
    """Class and task of a checkpoint."""

    architecture: str  # the class it was saved from; empty if unknown
    task: str | None  # None: a class without a known objective


def objective(source: str, *, revision: str | None = None, trust_remote_code: bool = False) -> Objective:
    """The objective of a checkpoint according to its class; a base encoder-decoder counts as generating text."""
    config = load_config(source, revision=revision, trust_remote_code=trust_remote_code)
    architecture = saved_class_name(config) or ""
    return Objective(architecture, _task(architecture, config))


def _task(architecture: str, config: PreTrainedConfig) -> str | None:
    if architecture in _PRETRAINING:
        return "masked-language-modelling"
    task = next((task for ending, task in _ENDINGS.items() if architecture.endswith(ending)), None)
    writes = type(config) in transformers.AutoModelForSeq2SeqLM._model_mapping  # not for speech and images
    if getattr(config, "is_encoder_decoder", False):
        base = task is None and architecture.endswith("Model") and not architecture.endswith("EncoderModel")
        return "translation" if writes and (task == "translation" or base) else None
    return None if task == "translation" else task
