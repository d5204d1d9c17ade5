"""The demo: train a translation model on the embedded corpus, run the experiments of both papers on it, prune it.

DIR/model        the trained model with the checkpoints of its epochs
DIR/study        the records of every part
DIR/smaller      the model without the heads that matter least
DIR/report.html  the page, which the command writes after each part
An interrupted demo resumes where it stopped, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headcount import journal
from headcount.checkpoints.loading import Loading
from headcount.corpora.parallel import read_parallel
from headcount.corpora.source import Source
from headcount.errors import UsageError
from headcount.progress import Progress, silent
from headcount.record import Record
from headcount.record.results.combined import Combined
from headcount.studies.study_settings import StudySettings
from headcount.studies.translation import TranslationSettings, train_translation
from headcount.studies.whole import whole_study
from headcount.training.preset import PRESETS
from headcount.training.run import Watch

REPORT = "report.html"
KEPT = 0.6  # share of heads that the pruned model keeps


def training_settings(seed: int, *, quick: bool) -> TranslationSettings:
    """The preset `tiny`, or a shorter run of it."""
    tiny = PRESETS["tiny"]
    recipe = replace(tiny.recipe, seed=seed)
    if quick:
        recipe = recipe.with_steps(800)
    return TranslationSettings("grammar", tiny.size, recipe, tiny.vocabulary)


def study(model: Path, *, quick: bool) -> StudySettings:
    """Settings of both papers in a size that takes a quarter of an hour on two cores."""
    settings = StudySettings(
        model=str(model), source=Source("grammar", "dev", limit=120), other_split="ood", role_limit=1000, followed=60,
        random=3,
        batches=(1, 16), lengths=(16,), gate_steps=200, tune_steps=140,
        all_kinds_keep=(8,), scratch_steps=700,
    )  # fmt: skip
    if not quick:
        return settings
    return replace(
        settings, source=Source("grammar", "dev", limit=50), train_limit=8000, followed=20, random=2, step=0.2,
        keep=(5,), ways=("l0", "random"),
        gate_steps=40, tune_steps=60, all_kinds_ways=("l0",),
    )  # fmt: skip


def train_model(out: Path, *, seed: int = 0, quick: bool = False, watch: Watch | None = None) -> Path:
    """The folder of the demo's model, which is trained if it does not exist."""
    _check_room(out)
    model, settings = out / "model", training_settings(seed, quick=quick)
    if (model / "config.json").is_file():
        _check_trained_alike(model, settings)
    else:
        train_translation(read_parallel("grammar"), model, settings, watch=watch)
    return model


def _check_room(out: Path) -> None:
    """Raise if a folder in which no demo has begun its study has something in the place of a result."""
    if (out / "study" / "settings.json").is_file():
        return
    existing = [name for name in ("study", "smaller", REPORT) if (out / name).is_file() or journal.contents(out / name)]
    if existing:
        raise UsageError(f"{out} already has {', '.join(existing)}, not of a demo. Give a new folder with --out.")


def _check_trained_alike(model: Path, settings: TranslationSettings) -> None:
    """Raise if the existing model was trained with another seed or length."""
    file = model / "training" / "settings.json"
    if not file.is_file():  # a model of the user
        return
    recipe = journal.read_json(file)["recipe"]
    for name in ("seed", "steps"):
        value = getattr(settings.recipe, name)
        if recipe[name] != value:
            raise UsageError(
                f"{model} was trained with {name} {recipe[name]}; {name} {value} would make another model. Give "
                "another folder with --out, or the same options as before."
            )


def demo(
    model: Path,
    out: Path,
    *,
    quick: bool = False,
    progress: Progress = silent,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Study a trained model and prune it. refresh is called with the record after each part."""
    record = whole_study("all", study(model, quick=quick), out / "study", progress=progress, refresh=refresh)
    if not (out / "smaller" / "config.json").is_file():
        _smaller(out, record, progress)
    return record


def _smaller(out: Path, record: Record[Combined], progress: Progress) -> None:
    """Remove the heads with the lowest gradient scores, compensate for them and save the model."""
    from headcount.checkpoints.load import load
    from headcount.pruning.prune import prune
    from headcount.pruning.saving import Saving
    from headcount.selection.budget import Budget
    from headcount.studies.subject import StudySubject

    settings = StudySettings.read(record.parts.settings)
    subject = StudySubject(settings, Loading(), out / "study", progress)
    result = prune(
        load(settings.model), subject.choosing, keep=Budget(share=KEPT), choose="gradient", compensate="lstsq",
        measure_on=subject.measuring, step=1.0, progress=progress,
    )  # fmt: skip
    saving = Saving(settings.model, data=settings.source.data)
    saving.save(result.model, out / "smaller", saving.completed(result.model, result.record), result.chosen_on)
