"""What the translation benchmarks share: text of the embedded grammar, its vocabulary, a model of the preset `tiny`."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from headcount.corpora.parallel import read_parallel
from headcount.corpora.vocabulary import learn_vocabulary
from headcount.tasks.translation import Translation
from headcount.training.loop import Loop
from headcount.training.preset import PRESETS
from headcount.training.recipe import Recipe
from headcount.training.transformer import new_translation_model

TINY = PRESETS["tiny"]


@cache
def tokenizer() -> Any:
    train = read_parallel("grammar")["train"]
    folder = Path(tempfile.mkdtemp()) / "vocabulary"
    return learn_vocabulary(train["source"], train["target"], folder, size=TINY.vocabulary, shared=True)


def task(split: str, rows: int, **options: Any) -> Translation:
    pairs = read_parallel("grammar")[split].select(range(rows))
    return Translation(source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer(), **options)


def new_model() -> Any:
    model = new_translation_model(TINY.size, tokenizer(), seed=0)
    model.set_attn_implementation("eager")  # as `headcount train` does on a CPU; both sides get the same model
    return model


def train(model: Any, data: Translation, recipe: Recipe) -> None:
    """The loop alone: nothing measured on held-out text, nothing kept."""
    with tempfile.TemporaryDirectory() as folder:
        Loop(
            model, data, recipe, Path(folder), TINY.size.width,
            judge=lambda _: {"loss": 0.0}, keep=lambda _: None, accelerator=Accelerator(cpu=True),
        ).run()  # fmt: skip
