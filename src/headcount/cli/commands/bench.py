"""headcount bench: compare the speed of models."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import options


@click.command("bench")
@options.loading
@click.argument("pruned_models", nargs=-1, metavar="[PRUNED]...")
@click.option("--batches", default="1,4,16,64", show_default=True, help="Batch sizes, separated by commas.")
@click.option("--lengths", default="32,128", show_default=True, help="Input lengths in tokens, separated by commas.")
@options.integer("--written", "Tokens to generate, for models that can.", 16)
@options.integer("--repeats", "Number of times that each model runs; models take turns.", 7)
@options.output
def COMMAND(
    model: str,
    pruned_models: tuple[str, ...],
    loading: options.Loading,
    batches: str,
    lengths: str,
    output: options.Output,
    **settings: Any,
) -> None:
    """Measure the speed and memory of MODEL and its PRUNED versions side by side.

    Each is a checkpoint or an export, such as half.gguf, half.onnx or a folder of OpenVINO.

    Run nothing else at the same time: other load slows all models and widens the intervals.
    """
    from headcount.cli import show
    from headcount.studies.speed import Bench, speed

    bench = Bench(options.numbers(batches, "--batches"), options.numbers(lengths, "--lengths"), **settings)
    with show.working("Loading the models"):
        models = {name: _load(name, loading) for name in dict.fromkeys((model, *pruned_models))}
    with show.Bars() as bars:
        record = speed(models, bench=bench, progress=bars.show)
    small = (
        f"headcount prune {shlex.quote(model)} --keep ... --out SMALLER; headcount bench {shlex.quote(model)} SMALLER"
    )
    output.present(record, "" if pruned_models else small)


def _load(name: str, loading: options.Loading) -> Any:
    """An export in its runtime, everything else in PyTorch."""
    import torch

    from headcount.exports.load_export import load_export

    return load_export(name, threads=torch.get_num_threads()) or loading.load(name)
