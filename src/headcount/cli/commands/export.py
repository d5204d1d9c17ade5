"""headcount export: a model, plain or pruned, for another runtime."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import options

if TYPE_CHECKING:
    from headcount.exports.export import Export


@click.command("export")
@options.loading
@click.option("--to", required=True, type=click.Choice(options.RUNTIMES.names()), help="Runtime to write for.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path),
    help="A file for formats that are one file, such as half.gguf; a folder for the others.",
)  # fmt: skip
@click.option(
    "--type", "number_format", metavar="FORMAT",
    help="Number format of the weights, such as f16, q8_0 (gguf, onnx) or int8 (onnx, ctranslate2). Default: f32.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an existing export.")
@click.option("--no-check", is_flag=True, help="Skip running the result in its runtime.")
@options.as_json
def COMMAND(
    model: str,
    loading: options.Loading,
    to: str,
    out: Path,
    number_format: str | None,
    overwrite: bool,
    no_check: bool,
    as_json: bool,
) -> None:
    """Write MODEL for another runtime, run it there on a few texts and compare it with the PyTorch model.

    gguf is for llama.cpp; vllm a folder for vLLM and transformers; onnx, openvino and ctranslate2 for the runtimes of
    these names. If a runtime does not support a model, the error has the reason and the closest supported model.
    """
    options.refuse(("dtype", "device"), "does nothing here: --type is the number format of an export")
    from headcount.exports.export import is_one_file

    if out.is_file() and not is_one_file(out):
        raise click.UsageError(f"--out {out} is a file; give a folder, or a file such as half.gguf or half.onnx.")
    with contextlib.nullcontext() if is_one_file(out) else options.reserved(out):
        result = _export(model, loading, to, out, number_format, overwrite, not no_check)
    if as_json:
        import json

        click.echo(json.dumps(result.to_plain(), indent=2))
    else:
        _show(result, model)


def _export(
    model: str, loading: options.Loading, to: str, out: Path, dtype: str | None, overwrite: bool, check: bool
) -> Any:
    from headcount.checkpoints.loading import quiet
    from headcount.cli import show
    from headcount.exports.export import RUNTIMES, check_dtype, check_installed, export

    check_dtype(RUNTIMES[to], to, dtype)  # before a large model is loaded
    check_installed(RUNTIMES[to], to)
    quiet()
    choices: dict[str, Any] = {"revision": loading.revision} if loading.revision else {}
    choices |= {"trust_remote_code": True} if loading.trust_remote_code else {}
    with show.working(f"Exporting {model}"):
        return export(model, to, out, dtype=dtype, overwrite=overwrite, check=check, **choices)


def _show(result: Export, model: str) -> None:
    from headcount.cli import show

    console = show.console()
    show.title(console, str(result.path), f"{result.runtime}, {result.dtype}, {result.size / 1e6:.1f} MB")
    for note in result.notes:
        show.line(console, f"{note}.")
    show.line(console, f"{result.agreement or result.unchecked}.")
    show.line(console, f"\nNext: headcount inspect {shlex.quote(model)}", dim=True)
