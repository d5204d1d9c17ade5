"""The demo: a translation model learns the embedded corpus, every experiment of both papers runs on it, heads go.

DIR/model        the trained model with the checkpoints of its epochs
DIR/study        the records of every part
DIR/smaller      the model without the heads that matter least
Everything goes on where it was interrupted, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headcount.corpora.parallel import read_parallel
from headcount.record import Record
from headcount.record.results.combined import Combined
from headcount.studies.source import Loading
from headcount.studies.translation import Settings as Training
from headcount.studies.translation import train_translation
from headcount.studies.whole import Progress, Settings, whole_study
from headcount.training.preset import preset
from headcount.training.run import Watch

KEPT = 0.6  # share of the heads that the smaller model keeps


def training(seed: int, *, quick: bool) -> Training:
    """The preset `tiny`; a shorter run of it for a quick look."""
    tiny = preset("tiny")
    recipe = replace(tiny.recipe, seed=seed)
    if quick:
        recipe = recipe.with_steps(800)
    return Training("grammar", tiny.size, recipe, tiny.vocabulary)


def study(model: Path, *, quick: bool) -> Settings:
    """Both papers at demo size: as many sentences of each split as a quarter of an hour on two cores allows."""
    whole = Settings(
        model=str(model), data="grammar", other="ood", sentences=120, followed=60, random=3,
        batches=(1, 16), lengths=(16,), repeats=5, gate_steps=60, tune_steps=140,
        all_kinds_keep=(8,), scratch_steps=700,
    )  # fmt: skip
    if not quick:
        return whole
    return replace(
        whole, sentences=50, learned=8000, followed=20, random=2, step=0.2, keep=(5,), ways=("l0", "random"),
        gate_steps=40, tune_steps=60, repeats=3, all_kinds_ways=("l0",),
    )  # fmt: skip


def trained(out: Path, *, seed: int = 0, quick: bool = False, watch: Watch | None = None) -> Path:
    """The model of the demo, trained where it is not there yet."""
    model = out / "model"
    if not (model / "config.json").is_file():
        train_translation(read_parallel("grammar"), model, training(seed, quick=quick), watch=watch)
    return model


def demo(
    model: Path,
    out: Path,
    *,
    quick: bool = False,
    progress: Progress = lambda *_: None,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Study a trained model and prune it; refresh is called with what is known after each part of the study."""
    record = whole_study("all", study(model, quick=quick), out / "study", progress=progress, refresh=refresh)
    if not (out / "smaller" / "config.json").is_file():
        _smaller(out, record, progress)
    return record


def _smaller(out: Path, record: Record[Combined], progress: Progress) -> None:
    """Remove the heads with the lowest gradient scores, make up for them, save what is left."""
    from headcount.checkpoints.load import load
    from headcount.methods.given import save_pruned
    from headcount.methods.method import prune
    from headcount.selection.budget import Budget
    from headcount.studies.whole import Subject

    settings = Settings.read(record.parts.settings)
    subject = Subject(settings, Loading(None, None, trust_remote_code=False), out / "study", progress)
    result = prune(
        "rank", load(settings.model), subject.choosing, budget=Budget(share=KEPT), measure_on=subject.measuring,
        compensate="lstsq", step=1.0, progress=progress,
    )  # fmt: skip
    save_pruned(result.model, out / "smaller", result.record, source=settings.model)
