"""headcount bench: compare the speed of models and, on data, their quality."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options
from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.tasks.overlap import Examples
    from headcount.tasks.task import Task

_OF_DATA = (
    "task", "split", "limit", "metric", "batch_size", "max_length", "beams", "lowercase", "languages", "columns",
    "longest", "text_column", "label", "pair",
)  # fmt: skip


@click.command("bench")
@options.loading
@options.model_argument("pruned_models", nargs=-1, metavar="[PRUNED]...")
@click.option("--batches", default="1,4,16,64", show_default=True, help="Batch sizes, separated by commas.")
@click.option("--lengths", default="32,128", show_default=True, help="Input lengths in tokens, separated by commas.")
@options.integer("--written", "Tokens to generate, for models that can.", 16)
@options.integer("--repeats", "Number of times that each model runs; models take turns.", 7)
@data.tasked(split="test", required=False, inferred=True)
@options.output
def COMMAND(
    model: str,
    pruned_models: tuple[str, ...],
    loading: options.Loading,
    batches: str,
    lengths: str,
    work: data.Workload | None,
    output: options.Output,
    **settings: Any,
) -> None:
    """Measure the speed and memory of MODEL and its PRUNED versions side by side.

    Each is a checkpoint or an export, such as half.gguf, half.onnx or a folder of OpenVINO. With --data their quality
    is measured too, exports in their runtimes; MODEL is then a checkpoint, whose tokenizer reads the data.

    Run nothing else at the same time: other load slows all models and widens the intervals.
    """
    from headcount.cli import show
    from headcount.studies.speed import Bench, speed

    if work is None:
        options.refuse(_OF_DATA, "is for quality, which needs --data")
    bench = Bench(options.numbers(batches, "--batches"), options.numbers(lengths, "--lengths"), **settings)
    with show.working("Loading the models"):
        if work is not None:
            work = replace(work, task=work.task or data.inferred_task(model, loading))
        task = work.build(model, loading) if work else None
        models = {name: _load(name, loading, work) for name in dict.fromkeys((model, *pruned_models))}
        if work is not None and task is not None:
            _check_inputs(models, task, loading, replace(work, reference=model))
    with show.Bars() as bars:
        chosen_on = _chosen_on(models, loading.revision) if task is not None else []
        record = speed(models, bench=bench, task=task, chosen_on=chosen_on, progress=bars.show)
    small = (
        f"headcount prune {shlex.quote(model)} --keep ... --out SMALLER; headcount bench {shlex.quote(model)} SMALLER"
    )
    output.present(record, "" if pruned_models else small)


def _chosen_on(models: Mapping[str, Any], revision: str | None) -> list[Examples]:
    """What heads of the models were chosen on. Of an export in one file, which cannot say it, it is unknown."""
    from torch import nn

    from headcount.checkpoints.chosen_on import read_chosen_on
    from headcount.tasks.overlap import UNKNOWN

    return [
        examples
        for name, model in models.items()
        for examples in read_chosen_on(name, revision) or (() if isinstance(model, nn.Module) else (UNKNOWN,))
    ]


def _check_inputs(models: Mapping[str, Any], task: Task, loading: options.Loading, work: data.Workload) -> None:
    """Raise if the tokenizer or the classes of a checkpoint give other inputs than those of the first model."""
    from torch import nn

    from headcount.checkpoints.companions import find_file
    from headcount.tasks.batch import fingerprint

    reference, inputs = next(iter(models)), fingerprint(task.batches())
    for name, model in models.items():
        if name == reference or not isinstance(model, nn.Module):
            continue
        tokenizer_file = find_file(name, "tokenizer_config.json", loading.revision)
        if tokenizer_file is not None and fingerprint(work.build(name, loading).batches()) != inputs:
            raise UsageError(
                f"{name} reads the data in another way than {reference}: its tokenizer gives other tokens, its classes "
                "have other numbers, or its limit is another. Measure the quality of each with headcount evaluate, "
                "and leave out --data here."
            )


def _load(name: str, loading: options.Loading, work: data.Workload | None) -> Any:
    """An export in its runtime, everything else in PyTorch."""
    import torch

    from headcount.exports.load_export import load_export

    return load_export(name, threads=torch.get_num_threads()) or loading.load(
        name, task=work.loaded_for if work else None
    )
