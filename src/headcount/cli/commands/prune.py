"""headcount prune: remove heads from a model and save the smaller model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options, stages
from headcount.errors import UsageError
from headcount.pruning.choosers.given import Given
from headcount.pruning.pipeline import Chooser, Pipeline, chooser_of, choosers, compensations, split_name
from headcount.pruning.tuning import Tuning
from headcount.selection.budget import parse_budgets
from headcount.selection.shape import Shape
from headcount.studies.workload import HALF

if TYPE_CHECKING:
    from headcount.record import Record

_LOADED_BY = {
    "stock": "A plain checkpoint: any transformers loads it.",
    "standalone": "from_pretrained({out!r}, trust_remote_code=True) loads it, or hc.load({out!r}).",
    "headcount": "Stock code refuses its shapes: hc.load({out!r}) loads it, and with --standalone from_pretrained.",
}
_CHOOSERS = stages.chooser_options()
_TUNING = {stages.parameter(name, Tuning): name for name in Tuning.limits()}
_SHAPE = {stages.parameter(name, Shape): name for name in Shape.limits()}
_TRAINING = (*_TUNING, "train_split", "train_limit", "save_seconds")
_HEADINGS = {
    "Which heads go": ("choose", "keep", "remove", "kinds", "choose_limit", "seed"),
    "What the heads that stay look like": ("runtime", *_SHAPE),
    "Compensation": ("compensate", "add_bias", "calibrate_split"),
    "Fine-tuning": _TRAINING,
    "Data": ("task", "data", "split", "measure_split", "measure_task", "limit", "batch_size", "max_length", "metric"),
    "Data of single tasks": ("languages", "columns", "longest", "text_column", "label", "pair", "beams", "lowercase"),
    "Model": ("device", "device_map", "dtype", "revision", "trust_remote_code"),
    "Output": ("out", "overwrite", "standalone", "verify", "length", "as_json", "all_rows"),
    **stages.chooser_headings(_CHOOSERS),
}  # fmt: skip


def _generated(function: options.Command) -> options.Command:
    """The options of shapes, of training and of all choosers."""
    members = (option for option, _ in _CHOOSERS.values())
    return options.stacked(function, reversed([*stages.options_of(Shape), *stages.options_of(Tuning), *members]))


@click.command("prune", cls=stages.Grouped, headings=_HEADINGS)
@options.loading
@click.option(
    "--choose", metavar="HOW",
    help="How heads are chosen on your data: random, fisher, greedy, l0, subset, or a score such as gradient, "
         "which removes the heads with the lowest scores.",
)  # fmt: skip
@click.option(
    "--keep", metavar="HEADS|N|N%",
    help="Heads to keep, by name; with --choose, how many: 10, 40%, encoder=10, with gates also "
         "encoder=8,cross=50%; or the cost of the pruned model: 90%params, 5Mparams, 80%flops, 2Gflops, 75%ms, 12.5ms.",
)  # fmt: skip
@click.option("--remove", metavar="HEADS", help="Heads to remove: encoder.0.3,decoder.1.* (* matches any number).")
@click.option("--kinds", help="Kinds of heads that may be removed, such as encoder,cross. Default: all.")
@click.option(
    "--for", "runtime", type=click.Choice(options.RUNTIMES.names()),
    help="A runtime that the smaller model is for: heads are chosen in a shape that it takes without workarounds.",
)  # fmt: skip
@options.seed("everything that is random")
@options.choice(
    "--compensate",
    compensations.names(),
    "Fit the remaining heads to make up for the removed ones, without training. Default: none; lstsq with greedy.",
)
@click.option("--add-bias", is_flag=True, help="Add a bias to output projections that have none, to compensate with.")
@click.option(
    "--calibrate-split",
    help="Split with the calibration data of the compensation. Default: the one that heads are chosen on.",
)
@_generated
@options.choose_limit()
@click.option("--train-split", default="train", show_default=True, help="Split to train on.")
@options.train_limit
@options.save_seconds
@data.tasked(split="dev", required=False, measured=True)
@data.measure_task
@click.option("--out", required=True, type=options.FOLDER, help="Folder for the pruned model and record.json.")
@click.option("--overwrite", is_flag=True, help="Replace an existing checkpoint.")
@click.option("--standalone", is_flag=True, help="Add code that loads the model without headcount.")
@options.toggle(
    "--verify/--no-verify",
    "Compare the masked and the pruned model before saving; a model that fails is saved in OUT.unverified.",
)
@options.length
@options.as_json
@options.every_row
def COMMAND(model: str, loading: options.Loading, out: Path, as_json: bool, all_rows: bool, **values: Any) -> None:
    """Remove heads from MODEL physically and save a smaller model.

    Four stages, of which only the third is required: choose heads (--choose and --keep N on your data, or by name with
    --remove or --keep), compensate for them (--compensate), remove them, and fine-tune (--tune). If a command that
    trains, or searches with greedy, is interrupted, run it again to resume.
    """
    from headcount.cli import show

    job = _Job(model, loading, out, values)
    pipelines = job.pipelines()  # errors are reported before a large model is loaded
    if len(pipelines) > 1:
        options.refuse_checkpoint(out)  # its models go to folders inside, and its record to record.json
        options.refuse_other_results(out, "prune-sweep", model)
    with options.reserved(out, shared=len(pipelines) > 1):  # processes share the models of a sweep
        record = job.run(pipelines)
    note, hint = _closing_lines(out, record, swept=len(pipelines) > 1)
    show.result(record, as_json=as_json, all_rows=all_rows, note=note, hints=[hint])


@dataclass(frozen=True)
class _Job:
    """The options of the command line."""

    model: str
    loading: options.Loading
    out: Path
    values: dict[str, Any]

    def pipelines(self) -> dict[str, Pipeline]:
        """One pipeline, or one for each value of an option with several values."""
        values = self.values
        chooser_name = values["choose"]
        try:
            member = choosers[split_name(chooser_name)[0] if chooser_name else "given"]
        except UsageError as error:
            raise click.UsageError(f"--choose {chooser_name}: {error}") from error
        wrong = f"is not an option of --choose {chooser_name}" if chooser_name else "goes with --choose"
        options.refuse([name for name in _CHOOSERS if name not in member.limits()], wrong)
        chooser_values = {name: values[name] for name in member.limits()}
        swept = [name for name, limits in member.limits().items() if limits.several and chooser_values[name]]
        for name in swept:
            if len(chooser_values[name]) > 1:
                folders = _folders(chooser_values[name])
                return {folders[value]: self._pipeline({**chooser_values, name: value}) for value in folders}
            (chooser_values[name],) = chooser_values[name]
        return {"": self._pipeline(chooser_values)}

    def _pipeline(self, chooser_values: Mapping[str, object]) -> Pipeline:
        values, kinds = self.values, list(options.names(self.values["kinds"]))
        keep, chooser = None, self._named_heads()
        if chooser is None:
            keep, kind = _budgets(values["keep"])
            if kind and kinds and kinds != [kind]:
                raise click.UsageError(
                    f"--keep names the kind {kind}, --kinds names {','.join(kinds)}: give only one of the two options."
                )
            kinds = kinds or ([kind] if kind else [])
            chooser = chooser_of(values["choose"], chooser_values)
        if chooser.needs_data and not self.work:
            raise click.UsageError(f"--choose {values['choose']} needs --task and --data.")
        pipeline = Pipeline(
            chooser, keep, tuple(kinds) or None, values["compensate"] or "", self._tuning(chooser),
            add_bias=values["add_bias"], seed=values["seed"], length=values["length"],
            shape=Shape(**{field: values[name] for name, field in _SHAPE.items()}),
        )  # fmt: skip
        self._check(pipeline)
        return pipeline

    def _named_heads(self) -> Chooser | None:
        """The chooser of named heads; None with --choose."""
        values = self.values
        if values["choose"] is not None:
            if values["remove"] is not None:
                raise click.UsageError("--remove names the heads: give it, or --choose with --keep N.")
            return None
        remove, keep = (options.names(values[name]) for name in ("remove", "keep"))
        if bool(remove) == bool(keep):
            raise click.UsageError(
                "Give either --remove or --keep, a list of heads such as encoder.0.3,encoder.1.*, or --choose with "
                "--keep N."
            )
        options.refuse(["kinds"], "needs --choose: named heads already include their kind")
        return Given(remove=remove or None, keep=keep or None)

    def _tuning(self, chooser: Chooser) -> Tuning | None:
        if not chooser.trains and self.values["tune"] is None:
            options.refuse(_TRAINING, "is for training: give --tune STEPS too")
            return None
        return Tuning(**{field: self.values[name] for name, field in _TUNING.items()})

    def _check(self, pipeline: Pipeline) -> None:
        """Raise for options that would do nothing."""
        if not pipeline.random:
            options.refuse(["seed"], "has an effect only with --choose random, l0 or subset, or with --tune")
        if pipeline.compensate == "none":
            options.refuse(["add_bias", "calibrate_split"], "is for --compensate")
        elif not self.work:
            raise click.UsageError(
                f"--compensate {pipeline.compensate} needs --task and --data: texts to calibrate on."
            )
        if pipeline.trains:
            if not self.work:
                raise click.UsageError("--tune needs --task and --data: texts to train on.")
            options.refuse(
                ["overwrite"], "cannot be used when training: an unfinished run in the folder is resumed instead"
            )

    @property
    def work(self) -> data.Workload | None:
        return self.values["work"]

    def run(self, pipelines: dict[str, Pipeline]) -> Any:
        """Prune and save one or several models; returns the record."""
        from headcount.cli import show
        from headcount.pruning.folder import clear_finished, prune_in_folder, sweep
        from headcount.pruning.pipeline import Execution
        from headcount.pruning.saving import Saving

        values, work = self.values, self.work
        pipeline = next(iter(pipelines.values()))
        path = "" if work is None or values["measure_task"] else work.source.data  # a harness has data of its own
        saving = Saving(self.model, self.loading.revision, values["standalone"], values["overwrite"], path)
        if not pipeline.trains:
            clear_finished(self.out)
            saving.check_target(self.out)
        with show.working(f"Loading {self.model}"):
            texts = self._data(pipeline)
            live = self.loading.load(self.model, task=work.task if work else None)
            pipelines = self._for_runtime(pipelines, live)
            pipeline = next(iter(pipelines.values()))
        with show.Bars() as bars:
            execution = Execution(
                verify=values["verify"], inplace=True, save_seconds=values["save_seconds"], progress=bars.show
            )
            # settings that decide the numbers besides the pipeline
            reading = {"quality": _measuring(work), "max_length": work.max_length} if work else {}
            if values["measure_task"] is not None:
                reading["measured_by"] = values["measure_task"].task
            if len(pipelines) > 1:
                return sweep(pipelines, live, texts, self.out, saving, execution, reading=reading)
            return prune_in_folder(pipeline, live, texts, self.out, saving, execution, reading=reading)

    def _for_runtime(self, pipelines: dict[str, Pipeline], live: Any) -> dict[str, Pipeline]:
        """The same pipelines with the shape that --for requires, if given."""
        from headcount.exports.export import check_tokenizer, shape_for

        if not self.values["runtime"]:
            return pipelines
        shape = shape_for(live, self.values["runtime"])
        reading = {"revision": self.loading.revision, "trust_remote_code": self.loading.trust_remote_code}
        check_tokenizer(live, self.values["runtime"], self.model, **reading)
        return {name: replace(pipeline, shape=pipeline.shape.and_also(shape)) for name, pipeline in pipelines.items()}

    def _data(self, pipeline: Pipeline) -> Any:
        """Data to choose, calibrate, train and measure on."""
        from headcount.pruning.pipeline import Data

        work, values, chooser = self.work, self.values, pipeline.chooser
        by_harness = values["measure_task"]
        if by_harness is not None:
            options.refuse(["measure_split"], "does nothing with --measure-task")
        if work is None:
            return Data(measure=by_harness.build(self.model, self.loading)) if by_harness else Data()
        metric, work = work.metric, replace(work, metric=None) if by_harness else work  # of the measured task
        train, choose_on, measured = self._divided(work, pipeline)
        if by_harness is not None:
            measured = replace(by_harness, metric=metric)
        calibrate_split = values["calibrate_split"]
        sources = {"train": train, "choose": choose_on, "measure": measured, "calibrate": choose_on.on(calibrate_split)}
        needed = {
            "train": pipeline.trains,
            "choose": not chooser.trains and pipeline.reads,
            "measure": True,
            "calibrate": bool(calibrate_split),
        }
        return Data(**{name: sources[name].build(self.model, self.loading) for name in sources if needed[name]})

    def _divided(self, work: data.Workload, pipeline: Pipeline) -> tuple[data.Workload, data.Workload, data.Workload]:
        """Texts to train on, to choose heads on and to measure on: those that are used are kept apart."""
        values = self.values
        train, choose_on, measured = work.on(values["train_split"]), work, work
        if values["measure_task"] is None:  # the harness measures on texts of its own
            if pipeline.reads and not pipeline.chooser.trains:
                choose_on, measured = work.divide()
                train = choose_on.on(values["train_split"])
            else:
                train, measured = work.divide(choose=train)
            if not pipeline.reads and not pipeline.trains and work.measure_split != HALF:
                measured = work.on(measured.source.split)  # all texts: none has to be kept apart
        train = train.with_limit(values["train_limit"])
        if pipeline.chooser.trains:
            return train, train, measured
        return train, choose_on.with_limit(values["choose_limit"] or choose_on.source.limit), measured


def _folders(values: Sequence[float]) -> dict[float, str]:
    """Value of an option -> its folder: six digits, or all of them if two values agree in six."""
    short = Counter(f"{value:g}" for value in set(values))
    return {value: f"{value:g}" if short[f"{value:g}"] == 1 else repr(value) for value in values}


def _budgets(text: str | None) -> tuple[Any, str | None]:
    if text is None:
        return None, None
    try:
        budget, kind = parse_budgets(text)
    except UsageError as error:
        raise click.UsageError(f"--keep {text}: {error}") from error
    for part in budget.values() if isinstance(budget, dict) else [budget]:
        if part.share == 0 or part.heads == 0:
            raise click.UsageError(f"--keep {text}: no heads would be left. Give a number above 0, such as 10 or 40%.")
    return budget, kind


def _measuring(work: data.Workload) -> dict[str, Any]:
    metric = {"metric": work.metric} if work.metric else {}
    return {**work.decoding, "lowercase": work.source.lowercase, **metric}


def _closing_lines(out: Path, record: Record, *, swept: bool) -> tuple[str, str]:
    """Where the models are, and the next useful command."""
    from headcount.checkpoints.card import BESIDE_README, CARD

    folder = shlex.quote(str(out))
    if not swept:
        loaded_by = _LOADED_BY[record.parts.loaded_by].format(out=str(out))
        card = f"\nYour {CARD} stays; the model card is {BESIDE_README}." if (out / BESIDE_README).is_file() else ""
        return f"\nSaved in {out}. {loaded_by}{card}", f"Next: headcount inspect {folder}"
    elsewhere = record.parts.elsewhere
    other_processes = f" Another process works on: {', '.join(elsewhere)}." if elsewhere else ""
    return f"\nSaved in {out}, a folder for each lambda.{other_processes}", f"Next: headcount inspect {folder}/LAMBDA"
