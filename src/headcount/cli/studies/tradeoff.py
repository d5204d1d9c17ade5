"""headcount study tradeoff: quality against the remaining heads, by learned pruning and its controls."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options
from headcount.studies.workload import HALF

if TYPE_CHECKING:
    from headcount.selection.budget import Budget
    from headcount.studies.tradeoff import Models

_WAYS = (
    "Ways of pruning, separated by commas: rank-SCORE, random, fisher, greedy, l0, subset, scratch. "
    "rank-SCORE and random are fine-tuned; rank-SCORE/untuned is not, rank-SCORE+lstsq (+bias, +scale) is "
    "compensated instead. fisher and greedy are fine-tuned with /tuned. /distilled adds a distillation loss. "
    "scratch trains random weights with the heads of l0, or of the first way listed."
)


@click.command("tradeoff")
@options.loading
@data.tasked(split="dev", measured=True)
@data.measure_task
@click.option(
    "--keep",
    required=True,
    help="Heads to keep, as numbers or shares: 12,8,3 or encoder=60%,35%,15%. All heads (100%): the control that is "
    "only fine-tuned.",
)
@click.option("--ways", default="l0,subset,rank-gradient,random", show_default=True, help=_WAYS)
@click.option("--seeds", default="0", show_default=True, help="Random seeds, one run each: 0,1,2.")
@click.option("--against", default="rank-gradient", show_default=True, help="Way that the others are compared with.")
@options.gate_steps
@options.tune_steps
@click.option(
    "--distill", metavar="SHARE", default=0.5, show_default=True, type=options.Real(0, 1, min_open=True),
    help="Weight of the distillation loss (KL divergence from MODEL's predictions), 0 to 1, of ways with "
         "/distilled.",
)  # fmt: skip
@click.option(
    "--rate",
    type=options.Real(0, min_open=True),
    help="Learning rate of the weights (except scratch). Default: as in headcount prune.",
)
@options.integer("--scratch-steps", "Training steps of scratch.", 3200)
@options.train_limit
@options.choose_limit(300)
@options.toggle("--roles/--no-roles", "Measure the roles of the remaining heads, in the whole and in the pruned model.")
@click.option(
    "--trees", help="Sentences to measure roles on: a treebank (.conllu) or a text file. Default: those of --data."
)
@click.option("--save-models", is_flag=True, help="Save the model of every point as OUT/models/WAY-HEADS-SEED.")
@options.shared_output
def COMMAND(
    model: str,
    loading: options.Loading,
    work: data.Workload,
    keep: str,
    ways: str,
    seeds: str,
    against: str,
    output: options.Output,
    **settings: Any,
) -> None:
    """Prune MODEL to several sizes by several pipelines with the same training each (Voita et al. 2019, section 6)."""
    from headcount.cli import show
    from headcount.pruning.run import counted_heads
    from headcount.pruning.saving import Saving
    from headcount.pruning.tuning import Tuning
    from headcount.studies.tradeoff import Data, Models, Plan, signature_of, tradeoff

    kind, _, numbers = keep.rpartition("=")
    if settings["save_models"] and output.out is None:
        raise click.UsageError("--save-models needs --out, a folder to keep them in.")
    if "/distilled" not in ways:
        options.refuse(["distill"], "is for ways with /distilled, and --ways has none")
    budgets, seed_numbers = _budgets(numbers), options.numbers(seeds, "--seeds")
    names = options.names(ways)
    if against not in names and options.is_typed("against"):
        raise click.UsageError(f"--against {against} is not one of --ways ({', '.join(names)}).")
    kinds = (kind,) if kind else None
    # Fails before the model is loaded. Only the model says how many heads a share is.
    plan = Plan(
        tuple(range(1, len(budgets) + 1)), names, kinds, seed_numbers, settings["steps"],
        Tuning(steps=settings["tune"], rate=settings["rate"]), settings["scratch_steps"], against, settings["distill"],
    )  # fmt: skip
    with show.working(f"Loading {model}"):
        by_harness = settings["measure_task"]
        if by_harness is None:
            choose_all, measure_on = work.divide()
        else:
            options.refuse(["measure_split"], "does nothing with --measure-task")
            choose_all, measure_on = replace(work, metric=None), replace(by_harness, metric=work.metric)
        choose_on = choose_all.with_limit(settings["choose_limit"])
        looking, unlooked = _looking(model, loading, choose_on, settings["roles"], settings["trees"])
        measure, choose = measure_on.build(model, loading), choose_on.build(model, loading)
        train = choose_on.on("train").with_limit(settings["train_limit"]).build(model, loading)
        live = loading.load(model, task=work.task)
    plan = replace(plan, keep=_counts(budgets, len(counted_heads(live, kinds))))
    keeping = output.out if settings["save_models"] else None
    path = "" if by_harness else work.source.data
    models = Models(keeping / "models", Saving(model, loading.revision, data=path)) if keeping else None
    texts = Data(train, choose, measure)
    record = output.finished(
        signature_of(live, texts, plan, name=model, looking=looking, models=models),
        lambda earlier: models is None or models.has_all(earlier.parts.points),
    )
    if record is None:
        _refuse_models(output, models)
        with show.Bars() as bars:
            record = tradeoff(
                live, texts, plan, name=model, revision=loading.revision, looking=looking, unlooked=unlooked,
                folder=output.unfinished, models=models, progress=bars.show,
                command=_command(model, choose_on, settings["train_limit"], measure_on),
            )  # fmt: skip
    if record.parts.unfinished:  # the process that measures the last point writes the record
        output.show(record, note=f"{record.parts.unfinished} points are under way in other processes.")
    else:
        output.present(record, min(record.parts.points, key=lambda point: point.keep).command)


def _budgets(text: str) -> tuple[Budget, ...]:
    """Sizes to prune to, from --keep: shares and numbers of heads, which may be ranges."""
    from headcount.selection.budget import Budget

    parts = [
        [Budget.parse(part)] if "%" in part else [Budget(heads=number) for number in options.numbers(part, "--keep")]
        for part in options.names(text)
    ]
    budgets = tuple(budget for part in parts for budget in part)
    for budget in budgets:
        if budget.counts != "heads":
            raise click.UsageError(f"--keep {budget}: a trade-off keeps numbers or shares of heads, such as 12 or 35%.")
        if not (budget.share if budget.heads is None else budget.heads):
            raise click.UsageError(f"--keep {budget}: a trade-off keeps at least 1 head, such as --keep 1.")
    if len(set(budgets)) < len(budgets):
        sizes = ", ".join(map(str, budgets))
        raise click.UsageError(f"--keep repeats a value: {sizes}. Give each value once.")
    return budgets


def _counts(budgets: tuple[Budget, ...], total: int) -> tuple[int, ...]:
    """Numbers of heads to keep of so many; shares that come to the same number are one size."""
    sizes = {budget: budget.of(total) if budget.heads is None else int(budget.heads) for budget in budgets}
    for budget, size in sizes.items():
        if not size:
            raise click.UsageError(
                f"--keep {budget}: of {total} heads this is none; a trade-off keeps at least 1 head, such as --keep 1."
            )
    return tuple(dict.fromkeys(sizes.values()))


def _refuse_models(output: options.Output, models: Models | None) -> None:
    """Raise if the folder has the models of a finished trade-off with other settings, which would be replaced."""
    from headcount import processes
    from headcount.errors import FolderError

    has_models = (
        output.out is not None and models is not None and models.folder.is_dir() and any(models.folder.iterdir())
    )
    if processes.gather(has_models and (Path(output.out or "") / "record.json").is_file())[0]:
        raise FolderError(
            f"{output.out} has the models of a finished trade-off with other settings or data, or some of its models "
            "are gone; give another folder with --out."
        )


def _command(model: str, work: data.Workload, train_limit: int | None, measured: data.Workload) -> tuple[str, str]:
    """The command that makes a point, before and after the arguments of its pipeline."""
    values = click.get_current_context().params
    reading = [work.as_options(), *([f"--split {shlex.quote(work.source.split)}"] if work.source.split else [])]
    reading += [f"--limit {values['limit']}"] if values["limit"] else []
    reading += [f"--choose-limit {work.source.limit}"]
    reading += [f"--train-limit {train_limit}"] if train_limit else []
    for name in filter(options.is_typed, ("max_length", "batch_size", "longest")):
        reading.append(f"--{name.replace('_', '-')} {values[name]}")
    if measured.by_harness:
        reading.append(f"--measure-task {shlex.quote(measured.task)}")
    elif measured.source.half is not None:  # by name: not every way has to keep texts apart
        reading.append(f"--measure-split {HALF}")
    elif measured.source.split:
        reading.append(f"--measure-split {shlex.quote(measured.source.split)}")
    return f"headcount prune {shlex.quote(model)}", f"{' '.join(reading)} --out DIR"


def _looking(
    model: str, loading: options.Loading, work: data.Workload, roles: bool, trees: str | None
) -> tuple[Any, str]:
    """Sentences to measure roles on; None and the reason if roles are not measured."""
    if not roles:
        if trees:
            raise click.UsageError("--trees is used only to find roles; leave out --no-roles or --trees.")
        return None, "not asked for (--no-roles)"
    from headcount.studies.kept import Looking

    tokenizer = loading.tokenizer(model)
    return Looking(work.sentences(trees), tokenizer, work.frequencies(tokenizer)), ""
