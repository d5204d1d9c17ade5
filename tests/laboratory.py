"""A small translation laboratory for tests: parallel text, a vocabulary and an untrained model, made on the spot."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from datasets import Dataset

from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.parallel import Parallel
from headcount.corpora.vocabulary import learn_vocabulary
from headcount.studies.translation import TranslationSettings
from headcount.training.recipe import Recipe
from headcount.training.transformer import Size, new_translation_model

SIZE = Size(encoder_layers=2, decoder_layers=2, heads=4, width=32, inner=64, dropout=0.1)
RECIPE = Recipe(batch=300, chunk=150, factor=1.0, warmup=20, epochs=2, average=2, seed=3)
SETTINGS = TranslationSettings("a few sentences", SIZE, RECIPE, vocabulary=300)


@cache
def parallel(train: int = 300, held_out: int = 40) -> Parallel:
    splits = Grammar("light", "dialogue", train=train).splits()
    sizes = {"train": train, "dev": held_out, "test": held_out}
    return Parallel(
        {
            split: Dataset.from_dict(
                {
                    "source": [row.tree.text for row in splits[split][:size]],
                    "target": [row.target for row in splits[split][:size]],
                }
            )
            for split, size in sizes.items()
        },
        ("english", "light"),
    )


def vocabulary(folder: Path, **options: Any) -> Any:
    pairs = parallel()["train"]
    return learn_vocabulary(pairs["source"], pairs["target"], folder, **{"size": 300, "shared": True, **options})


def model(tokenizer: Any, **size: Any) -> Any:
    return new_translation_model(replace(SIZE, **size), tokenizer, seed=0).eval()
