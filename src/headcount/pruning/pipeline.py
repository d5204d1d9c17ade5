"""Pipeline: the stages of pruning: choose, compensate, remove, tune. `run` executes it; no torch here."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from headcount.errors import UsageError, check_name
from headcount.options import Options, option
from headcount.progress import Progress, silent
from headcount.pruning.tuning import STEPS, Tuning
from headcount.registry import Registry, plug_ins
from headcount.selection.budget import Budget
from headcount.selection.shape import FREE, Shape

if TYPE_CHECKING:
    from torch import nn

    from headcount.heads import HeadGrid
    from headcount.record.results.prune import ChoiceDetails, TrainingStage
    from headcount.surgery.price import Price
    from headcount.tasks.overlap import Examples, Identified
    from headcount.tasks.task import Task

Budgets = Budget | Mapping[str, Budget]
choosers: Registry[type[Chooser]] = Registry("chooser", "headcount.pruning.choosers", "CHOOSER")
compensations: Registry[Any] = Registry("compensation", "headcount.surgery.compensations", "COMPENSATION")
scores: Registry[Any] = Registry("score", "headcount.scores", "SCORE")
_FROM_RANDOM = (1000, 3200)  # steps after gates from random weights, and of ordinary training


@dataclass(frozen=True)
class Data:
    """Data to train on, to choose heads on, to measure on, and to fit the compensation on."""

    train: Task | None = None
    choose: Task | None = None  # the training data if None
    measure: Task | None = None
    calibrate: Task | None = None  # the data that heads are chosen on if None

    @property
    def training(self) -> Task:
        return _present(self.train, "train on")

    @property
    def choosing(self) -> Task:
        return _present(self.choose or self.train, "choose heads on")

    @property
    def calibrating(self) -> Task:
        return _present(self.calibrate or self.choose or self.train, "calibrate the compensation on")

    @property
    def measuring(self) -> Task:
        return _present(self.measure, "measure on")


def _present(task: Task | None, purpose: str) -> Task:
    if task is None:
        raise UsageError(f"There is no data to {purpose}: give a task (--task and --data).")
    return task


@dataclass(frozen=True)
class Execution:
    """How a pipeline is executed; none of it changes the pruned model."""

    verify: bool = True
    inplace: bool = False  # prune the given model itself
    folder: Path | None = None  # for states to resume from
    shared: Path | None = None  # for states shared with pipelines of other budgets; the folder if None
    save_seconds: float = 60.0  # between states
    measured: Literal["steps", "smaller", "nothing"] = "steps"  # smaller: only the pruned model
    progress: Progress = silent
    chosen_before: tuple[Examples, ...] = ()  # that heads were chosen on when the model was pruned before

    def price(self, model: nn.Module, pipeline: Pipeline) -> Price | None:
        """The cost that the pipeline's budget limits; None if it counts heads."""
        from headcount.surgery.price import Price

        unit = pipeline.budget.counts
        if unit == "heads":
            return None
        return Price(model, unit, length=pipeline.length, add_bias=pipeline.add_bias, folder=self.folder)

    @contextmanager
    def stage_folder(self, stage: str) -> Iterator[Path]:
        """The folder for the state of one stage; a temporary one if there is none to resume from."""
        with tempfile.TemporaryDirectory() if self.folder is None else nullcontext(self.folder) as parent:
            yield Path(parent) / stage


@dataclass(frozen=True)
class Choice:
    """Result of a chooser: the mask, the model, and details for the record."""

    mask: HeadGrid
    model: nn.Module  # the given one, or a trained copy
    details: ChoiceDetails | None = None  # for the record
    masks: Sequence[HeadGrid] = ()  # after each step, including the last
    training: TrainingStage | None = None  # of choosers that train
    seconds: float | None = None  # including earlier runs; None: as measured


@dataclass(frozen=True)
class Chooser(Options, ABC):
    """A method of choosing heads. Its fields are its options. One file of `choosers/` each."""

    about: ClassVar[str] = ""  # one line for --help
    trains: ClassVar[bool] = False  # trains weights while choosing heads
    needs_data: ClassVar[bool] = True
    resumes: ClassVar[bool] = False  # saves its steps in the execution's folder and resumes
    any_budget: ClassVar[bool] = False  # handles budgets of parameters or FLOPs itself
    usual_compensation: ClassVar[str] = "none"
    usually_tuned: ClassVar[bool] = False  # by default in the trade-off

    @property
    def name(self) -> str:
        """Name in `choose` and in the trade-off."""
        package, _, module = self.__class__.__module__.rpartition(".")
        if package == "headcount.pruning.choosers":
            return module.replace("_", "-")
        registered = (name for name in plug_ins(choosers.group) if choosers[name] is type(self))
        return next(registered, module.replace("_", "-"))

    @property
    def random(self) -> bool:
        """Whether another seed chooses other heads."""
        return self.trains

    def spell(self, compensate: str, *, tuned: bool, distilled: bool, shape: Shape = FREE) -> str:
        """A pipeline as text: NAME[:SHAPE][+COMPENSATION][/tuned|/untuned|/distilled], without defaults."""
        compensated = "" if compensate == self.usual_compensation else f"+{compensate}"
        usual = tuned == (self.usually_tuned and compensate == "none")
        ending = "/distilled" if distilled else "" if usual else "/tuned" if tuned else "/untuned"
        return f"{shaped_name(self.name, shape)}{compensated}{ending}"

    def check_budget(self, keep: Budgets | None) -> None:
        if not isinstance(keep, Budget):
            raise UsageError(f"{self.name} needs one budget (--keep) for all kinds together, such as 10 or 40%.")

    def data_of(self, data: Data, pipeline: Pipeline) -> Task:
        """The data that heads are chosen on."""
        return data.choosing

    def chosen_on(self, data: Data, pipeline: Pipeline) -> list[Identified]:
        """The data that heads are chosen on, unless it is trained on."""
        return [self.data_of(data, pipeline)] if self.needs_data and not self.trains else []

    @abstractmethod
    def choose(self, model: nn.Module, data: Data, pipeline: Pipeline, execution: Execution) -> Choice:
        """Choose the heads to keep."""


@dataclass(frozen=True)
class Gated(Chooser):
    """A chooser that trains gates."""

    trains: ClassVar[bool] = True
    usually_tuned: ClassVar[bool] = True

    steps: int | None = option(
        None, "Training steps with gates. Default: 150; 2200 from random weights.", type=int, minimum=0
    )
    gate_rate: float | None = option(
        None, "Learning rate of the gates. Default: 0.1 (l0), 0.2 or 0.5 (subset).", type=float, minimum=0.0,
        above=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Pipeline:
    """All settings that decide the pruned model, besides the model and the data."""

    chooser: Chooser
    keep: Budgets | None = None
    kinds: tuple[str, ...] | None = None
    compensate: str = ""  # the default of the chooser if empty
    tuning: Tuning | None = None  # None: the default for choosers that train, else none
    add_bias: bool = False  # to output projections that have none
    seed: int = 0
    length: int = 128  # tokens of the example for counting costs
    shape: Shape = FREE  # of the remaining heads

    def __post_init__(self) -> None:
        chooser = self.chooser
        compensate = self.compensate or chooser.usual_compensation
        check_name("compensation", compensate, compensations)
        tuning = self.tuning or (Tuning() if chooser.trains else None)
        if tuning is not None and tuning.steps is None:
            tuning = replace(tuning, steps=_FROM_RANDOM[not chooser.trains] if tuning.tuner == "scratch" else STEPS)
        kinds = self.kinds
        if isinstance(self.keep, Mapping):
            if kinds is not None and set(kinds) != set(self.keep):
                raise UsageError(
                    f"keep names the kinds {', '.join(self.keep)}, kinds= names {', '.join(kinds)}: give only one."
                )
            kinds = tuple(self.keep)
        settled = {"compensate": compensate, "tuning": tuning, "kinds": tuple(kinds) if kinds else None}
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        chooser.check_budget(self.keep)
        self._check_compensation()

    def _check_compensation(self) -> None:
        if self.compensate == "none":
            if self.add_bias:
                raise UsageError(
                    "add_bias is for a compensation, which fits the bias: give compensate, or leave it out."
                )
            return
        if self.chooser.trains:
            raise UsageError(
                f"{self.chooser.name} trains the weights; compensation ({self.compensate}) is only for pruning without "
                "training. Leave it out."
            )
        if self.tuning is not None and self.tuning.tuner == "scratch":
            raise UsageError(
                f"Training from scratch starts from random weights, and compensation ({self.compensate}) is fitted to "
                "those of the model: give compensate='none' (--compensate none)."
            )

    @property
    def budget(self) -> Budget:
        """The budget of choosers that take one for all kinds together, as `check_budget` makes sure."""
        return cast(Budget, self.keep)

    @property
    def tunes(self) -> bool:
        return self.tuning is not None and bool(self.tuning.steps)

    @property
    def trains(self) -> bool:
        """Whether any stage trains weights."""
        return self.chooser.trains or self.tunes

    @property
    def reads(self) -> bool:
        """Whether heads are chosen on texts, or compensated for."""
        return self.chooser.needs_data or self.compensate != "none"

    @property
    def random(self) -> bool:
        """Whether another seed gives another model."""
        return self.trains or self.chooser.random

    @property
    def name(self) -> str:
        """The text form that `Way` reads; with /TUNER for a tuner other than the default."""
        tuning = self.tuning
        if tuning is not None and self.tunes and tuning.tuner != "weights":
            return f"{shaped_name(self.chooser.name, self.shape)}/{tuning.tuner}"
        distilled = tuning is not None and self.trains and tuning.distill > 0
        return self.chooser.spell(self.compensate, tuned=self.tunes, distilled=distilled, shape=self.shape)

    def seen(self, data: Data) -> list[Identified]:
        """Data that heads are chosen, calibrated or trained on, each once. Raises if some of it is missing."""
        chosen_on = self.chooser.chosen_on(data, self)
        calibrated_on = [data.calibrating] if self.compensate != "none" else []
        trained_on = [data.train] if self.trains and data.train is not None else []
        return list({id(task): task for task in (*chosen_on, *calibrated_on, *trained_on)}.values())

    def to_plain(self) -> dict[str, Any]:
        """Arguments of a record."""
        budgets = {kind: str(part) for kind, part in self.keep.items()} if isinstance(self.keep, Mapping) else self.keep
        return {
            "choose": self.chooser.name,
            **self.chooser.to_plain(),
            "keep": budgets if budgets is None or isinstance(budgets, dict) else str(budgets),
            "kinds": list(self.kinds) if self.kinds else None,
            "compensate": self.compensate,
            "add_bias": self.add_bias,
            **({} if self.shape.free else {"shape": str(self.shape)}),
            "tuning": self.tuning.to_plain() if self.tuning else None,
        }

    def to_arguments(self) -> list[str]:
        """Arguments of `headcount prune` for the same pipeline, without those of the data."""
        arguments = [] if self.keep is None else ["--keep", _spell(self.keep, self.kinds)]
        if self.chooser.needs_data:
            arguments = ["--choose", self.chooser.name, *arguments]
        if self.kinds and not (arguments and "=" in arguments[-1]):
            arguments += ["--kinds", ",".join(self.kinds)]
        arguments += [*self.chooser.to_arguments(), *self.shape.to_arguments()]
        if self.compensate != self.chooser.usual_compensation:
            arguments += ["--compensate", self.compensate]
        arguments += ["--add-bias"] if self.add_bias else []
        arguments += self.tuning.to_arguments() if self.tuning else []
        return [*arguments, "--seed", str(self.seed)] if self.random and self.seed else arguments


def shaped_name(name: str, shape: Shape) -> str:
    """The name of a chooser with a shape: `greedy:even:at-least=1`."""
    return name if shape.free else f"{name}:{shape}"


def _spell(keep: Budgets, kinds: Sequence[str] | None) -> str:
    if isinstance(keep, Mapping):
        return ",".join(f"{kind}={part}" for kind, part in keep.items())
    return f"{kinds[0]}={keep}" if kinds and len(kinds) == 1 else str(keep)


def chooser_of(name: str, options: Mapping[str, object] | None = None) -> Chooser:
    """A chooser by name: such as `l0`, a score, or rank-SCORE if a chooser has the same name as the score."""
    kind, score = split_name(name)
    member, options = choosers[kind], dict(options or {})
    if score:
        options = {"score": score, **options}
    return member.of(options)


def split_name(name: str) -> tuple[str, str]:
    """The file of a chooser and, for the one that ranks, the score: gradient and rank-gradient are the same."""
    score = name.removeprefix("rank-")
    if score in scores and (score != name or name not in choosers):
        return "rank", score
    check_name("way to choose heads", name, chooser_names())
    return name, ""


def chooser_names() -> tuple[str, ...]:
    """All values of `choose`, in their shortest form."""
    files = [name for name in choosers if name not in ("rank", "given")]
    return tuple(sorted({*files, *(f"rank-{name}" if name in files else name for name in scores)}))
