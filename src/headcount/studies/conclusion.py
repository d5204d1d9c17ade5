"""The end of a training run: the final model is chosen and saved with its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headcount.checkpoints.folder import weight_files
from headcount.record import Record, Signature
from headcount.record.model_folder import training_record
from headcount.record.results.train import TrainingRun
from headcount.sites.fingerprint import weight_hash
from headcount.tasks.task import Task
from headcount.training.run import Judge, Run
from headcount.training.standing import Standing

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def earlier_record(run: Run) -> Record[TrainingRun] | None:
    """The record of a run whose model is in its folder already: the models of its epochs may be deleted by now."""
    complete = (run.out / "config.json").is_file() and weight_files(run.out)
    return training_record(str(run.out)) if complete else None


def conclude(
    run: Run,
    standing: Standing,
    judge: Judge,
    tokenizer: PreTrainedTokenizerBase,
    dev: Task,
    **parts: Any,
) -> Record[TrainingRun] | None:
    """Choose the final model by the judge and save it; None in processes other than the first.

    The record is of the model in the folder of the run; what training started from is in the settings.
    parts: of the result, besides those of every run.
    """
    record = None
    if run.accelerator.is_main_process:
        choice = run.choose(standing, judge)
        signature = Signature(
            str(run.out), weight_hash(choice.model), dev.fingerprint, run.recipe.seed, run.resolved_settings()
        )
        result = TrainingRun(
            candidate=choice.name, candidates=choice.candidates, epochs=standing.epoch_results(), steps=standing.step,
            seconds=standing.seconds, **parts,
        )  # fmt: skip
        record = Record("train", signature, result)
        run.finish(choice.model, tokenizer, record)
    run.accelerator.wait_for_everyone()
    return record
