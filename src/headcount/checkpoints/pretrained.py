"""save_pretrained of transformers, without the refusals that come only when the work is done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedModel

from headcount.checkpoints.folder import GENERATION


def save_pretrained(model: PreTrainedModel, folder: str | os.PathLike[str], **options: Any) -> None:
    """Write config, weights and rules of generation of a model; the last as they are.

    transformers loads rules that contradict each other, as published models have them (a temperature without sampling),
    with a warning, but refuses to save them.
    options: of `save_pretrained`.
    """
    rules = getattr(model, "generation_config", None)
    if not isinstance(rules, GenerationConfig):
        model.save_pretrained(folder, **options)
        return
    model.generation_config = GenerationConfig()
    try:
        model.save_pretrained(folder, **options)
    finally:
        model.generation_config = rules
    if model.can_generate():
        rules.to_json_file(Path(folder) / GENERATION, keys_to_pop=["compile_config"])
