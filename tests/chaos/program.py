"""The program under test: headcount with all modules imported and a minimal demo."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import datasets
import torch
import transformers
from matplotlib import pyplot as pyplot  # searches for fonts once

import headcount
from chaos.process import Program
from headcount.cli.main import main
from headcount.corpora.source import Source
from headcount.scores.shapley import shapley
from headcount.studies import demo
from headcount.studies.study_settings import StudySettings
from headcount.studies.translation import TranslationSettings
from headcount.training.transformer import Size

_STUDY = {
    "source": Source("pairs", "dev", limit=4, languages=("en", "xx")), "other_split": "", "train_limit": 40,
    "role_limit": 10, "followed": 2, "random": 1, "step": 0.5, "orders": ("gradient",), "batches": (1,),
    "lengths": (8,), "repeats": 1, "keep": (3,), "ways": ("l0", "random"), "gate_steps": 2, "tune_steps": 2,
    "all_kinds_keep": (4,), "all_kinds_ways": ("l0",),
}  # fmt: skip
_DEMO_PARTS = ("roles", "gradient", "tradeoff")  # `study all` tests all parts
_SIZE = Size(encoder_layers=2, decoder_layers=1, heads=2, width=16, inner=16, dropout=0.1)


def _prepare(cache: Path) -> None:
    datasets.config.HF_DATASETS_CACHE = cache
    shapley.__kwdefaults__["permutations"] = 4  # `study agreement` has no option for it
    _small_demo()


def _small_demo() -> None:
    """Reduce the demo to a few sentences, because every process generates its training data again."""
    usual_settings, usual_study, usual_reading = demo.training_settings, demo.study, demo.read_parallel

    def training_settings(seed: int, *, quick: bool) -> TranslationSettings:
        settings = usual_settings(seed, quick=quick)
        recipe = replace(settings.recipe, steps=None, epochs=2, average=2, batch=80, chunk=80, warmup=4, cooldown=0)
        return replace(settings, size=_SIZE, recipe=recipe, vocabulary=200)

    def study(model: Path, *, quick: bool) -> StudySettings:
        return replace(usual_study(model, quick=quick), **_STUDY)

    demo.training_settings, demo.study = training_settings, study
    demo.whole_study = partial(demo.whole_study, parts=_DEMO_PARTS)
    demo.read_parallel = lambda _: usual_reading("pairs", languages=("en", "xx"))


def _import_all() -> None:
    for info in pkgutil.walk_packages(headcount.__path__, "headcount."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)


_import_all()
PROGRAM = Program(main, _prepare)
