"""Run: resumable training in a folder. The final model is the best epoch, or the average if that is better.

DIR/                 the model with its tokenizer
DIR/record.json      what was measured
DIR/epochs/001/      the model after each epoch
DIR/epochs/0.25/     and, on request, within the first epoch
DIR/training/        settings, state to resume from, metrics.jsonl, and cached data
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount import journal
from headcount.checkpoints.chosen_on import write_chosen_on
from headcount.checkpoints.replaced import move_in
from headcount.checkpoints.save import save
from headcount.errors import UsageError
from headcount.record import Record
from headcount.tasks.overlap import Examples
from headcount.tasks.task import Task
from headcount.training.average import average
from headcount.training.loop import STATE, Loop, Report, Snapshots
from headcount.training.recipe import Recipe
from headcount.training.standing import Standing
from headcount.training.vitals import LARGEST_SPREAD, saturated, vitals

_SETTINGS = "settings.json"
Judge = Callable[[nn.Module], dict[str, float]]


@dataclass
class Watch:
    """Callbacks of a run."""

    step: Callable[[Report], None] = lambda _: None
    message: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class FinalModel:
    """The model that a run ends with."""

    model: nn.Module
    name: str  # name of the chosen candidate
    candidates: Mapping[str, Mapping[str, float]]  # as measured on the development data


@dataclass
class Run:
    """Training in a folder."""

    out: Path
    settings: Any  # dataclass of all settings that decide the result; a folder is resumed only with the same ones
    recipe: Recipe
    accelerator: Accelerator
    watch: Watch = field(default_factory=Watch)
    save_seconds: float = 60.0
    snapshots: int = 0  # models to save within the first epoch
    chosen_on: Sequence[Examples] = ()  # of a pruned model; every model that the run saves remembers them

    @property
    def work(self) -> Path:
        return self.out / "training"

    @property
    def _final(self) -> Path:
        """Folder of the finished model before it is moved into place."""
        return self.work / "final"

    def plain_settings(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self.settings)))

    def resolved_settings(self) -> dict[str, Any]:
        """The same with the recipe that was used, which may depend on the data."""
        return {**self.plain_settings(), "recipe": json.loads(json.dumps(asdict(self.recipe)))}

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Start the folder, or check that it was started with the same settings, and lock it.

        Only the main process of a run does so.
        """
        if not self.accelerator.is_main_process:
            yield
            return
        new = not (self.work / _SETTINGS).is_file()
        if new and (self.out.is_file() or self._foreign_contents()):
            raise UsageError(f"{self.out} holds something else already; give a new folder.")
        with journal.reserved(self.out):
            journal.claim(self.work, _SETTINGS, self.plain_settings())
            journal.remove_folder(self._final)  # of a run that was killed while moving the model into place
            yield

    def _foreign_contents(self) -> list[Path]:
        """Files in the folder other than an empty work folder of a killed run."""
        return [path for path in journal.contents(self.out) if path != self.work or journal.contents(path)]

    def abandon(self) -> None:
        """Delete the work folder so that other settings can be tried, unless steps were taken, which would be lost."""
        if not any(self.work.rglob(STATE)):
            journal.remove_folder(self.work)

    def train(
        self,
        model: PreTrainedModel,
        task: Task,
        judge: Judge,
        *,
        width: int,
        tokenizer: PreTrainedTokenizerBase,
        dev: Task | None = None,
    ) -> Standing:
        """Train to the end of the recipe, resuming from the folder.

        dev: data for monitoring the encoder's attention; saturated layers are reported after each epoch.
        """
        if self.accelerator.device.type == "cpu" and hasattr(model, "set_attn_implementation"):
            model.set_attn_implementation("eager")  # a tenth faster than SDPA on short texts

        def keep(name: str) -> None:
            folder = self.out / "epochs" / name
            save(model, folder, tokenizer=tokenizer, overwrite=True, add_files=self._write_chosen_on)

        return Loop(
            model, task, self.recipe, self.work, width, judge=judge, keep=lambda epoch: keep(f"{epoch:03d}"),
            accelerator=self.accelerator, save_seconds=self.save_seconds, watch=self.watch.step,
            vitals=partial(self._vitals, dev) if dev is not None else None,
            snapshots=Snapshots(self.snapshots, lambda share: keep(f"{share:g}")) if self.snapshots else None,
        ).run()  # fmt: skip

    def _vitals(self, dev: Task, model: nn.Module) -> dict[str, dict[str, float]]:
        layers = vitals(model, dev)
        for layer in saturated(layers):
            spread = layers[layer]["spread"]
            self.watch.message(
                f"The attention of {layer} is saturated: its logits have a standard deviation of {spread:.1f}, and "
                f"above {LARGEST_SPREAD:g} heads hardly learn. A lower learning rate or a longer warm-up helps."
            )
        return layers

    def choose(self, progress: Standing, judge: Judge) -> FinalModel:
        """The best epoch, or the average of the last ones, whichever is better on the development data."""
        recipe = self.recipe
        last = range(max(1, progress.epoch - recipe.average + 1), progress.epoch + 1)
        best = progress.best(recipe.watch)
        epochs = {f"epoch {best}": [best]}
        if len(last) > 1:
            epochs[f"average of epochs {last[0]} to {last[-1]}"] = list(last)
        models = {
            name: average([self.out / "epochs" / f"{epoch:03d}" for epoch in numbers])
            for name, numbers in epochs.items()
        }
        measured = {name: judge(model) for name, model in models.items()}
        sign = 1 if recipe.watch == "loss" else -1
        name = min(measured, key=lambda name: sign * measured[name][recipe.watch])
        return FinalModel(models[name], name, measured)

    def finish(self, model: nn.Module, tokenizer: PreTrainedTokenizerBase, record: Record) -> None:
        """Move the model and the record into the folder; config.json, which makes it a checkpoint, comes last."""

        def add_files(inside: Path) -> None:
            self._write_chosen_on(inside)
            record.save(inside / "record.json")

        with self.new_checkpoint() as folder:
            save(model, folder, tokenizer=tokenizer, add_files=add_files)

    def _write_chosen_on(self, folder: Path) -> None:
        if self.chosen_on:
            write_chosen_on(folder, self.chosen_on)

    @contextlib.contextmanager
    def new_checkpoint(self) -> Iterator[Path]:
        """A temporary folder for a checkpoint, which is moved into this one when complete.

        Files that the user has written into the folder meanwhile stay. The last step gives config.json its place:
        whoever finds it has nothing to clean up.
        """
        with journal.new_folder(self._final) as fresh:
            yield fresh / "model"
        config = (self._final / "model" / "config.json").replace(self.work / "final.json")
        move_in(self._final / "model", self.out)
        journal.remove_folder(self._final)
        if not journal.same_file(self.out / "config.json", config):  # that of a run that is finished is the same
            journal.set_aside(self.out / "config.json")
        config.replace(self.out / "config.json")
