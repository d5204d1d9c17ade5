"""headcount prune: cut heads out of a model and save the smaller one."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headcount.cli import data, options
from headcount.registry import Registry

# The same folders as in methods/method.py and scores/score.py, listed here without importing torch for --help.
_METHODS: Registry[Any] = Registry("method", "headcount.methods", "METHOD")
_SCORES: Registry[Any] = Registry("score", "headcount.scores", "SCORE")
_LOADED_BY = {
    "stock": "A plain checkpoint: any transformers loads it.",
    "standalone": "from_pretrained({out!r}, trust_remote_code=True) loads it, or hc.load({out!r}).",
    "headcount": "Its layers differ, so stock code refuses it; in Python: hc.load({out!r}).",
}


@click.command("prune")
@options.loading
@click.option("--remove", metavar="HEADS", help="Heads to remove: encoder.0.3,decoder.1.* (a star is any).")
@click.option(
    "--keep",
    metavar="HEADS|N|N%",
    help="Heads to keep, all others go; with --method, how many: 10 or 40%.",
)
@click.option("--method", type=click.Choice(_METHODS.names()), help="Find the heads to remove on data.")
@click.option(
    "--order", default="gradient", show_default=True, type=click.Choice(_SCORES.names()), help="Score (rank)."
)
@click.option("--recompute", is_flag=True, help="Score again after each step (rank).")
@click.option("--step", default="10%", show_default=True, help="Heads to mask at a time (rank).")
@click.option("--kinds", help="Kinds of heads that may go, such as encoder,cross; all if not given.")
@click.option(
    "--rule", default="top", show_default=True, type=click.Choice(["top", "uniform"]), help="Where heads stay."
)
@click.option("--at-least", default=0, show_default=True, type=click.IntRange(0), help="Heads that every layer keeps.")
@data.tasked(split="dev", required=False, measured=True)
@click.option("--out", required=True, type=options.FOLDER, help="Folder for the smaller model and record.json.")
@click.option("--overwrite", is_flag=True, help="Replace a checkpoint that is in the folder.")
@click.option("--standalone", is_flag=True, help="Add code that loads the model without headcount.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Compare masked and pruned model.")
@options.length
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    method: str | None,
    remove: str | None,
    keep: str | None,
    out: Path,
    as_json: bool,
    how: options.Loading,
    overwrite: bool,
    standalone: bool,
    verify: bool,
    length: int,
    **search: Any,
) -> None:
    """Remove heads from MODEL physically and save a smaller model that does the same as the masked one.

    Either name the heads (--remove, --keep), or let a method find them on your data (--method, --keep N, --task,
    --data).
    """
    from headcount.checkpoints.save import check_target

    check_target(out, overwrite)  # a wrong folder is said before a large model is loaded
    saving = {"standalone": standalone, "overwrite": overwrite}
    cutting = {"verify": verify, "length": length}
    if method is None:
        record = _given(model, how, remove, keep, out, {**saving, **cutting})
    else:
        record = _searched(method, model, how, remove, keep, out, saving, {**search, **cutting})
    if as_json:
        click.echo(record.to_json())
    else:
        _show(model, out, record.parts)


def _given(
    model: str, how: options.Loading, remove: str | None, keep: str | None, out: Path, work: dict[str, Any]
) -> Any:
    if (remove is None) == (keep is None) or not _names(remove or keep):
        raise click.UsageError("Give either --remove or --keep, a list of heads such as encoder.0.3,encoder.1.*")
    from headcount.cli import show
    from headcount.methods.given import prune_given
    from headcount.sites.locate import locate

    with show.working(f"Loading {model}"):
        live = how.load(model)
    sites = locate(live)
    mask = sites.mask(off=_names(remove)) if remove is not None else sites.mask(keep=_names(keep))
    said = {"remove": remove} if remove is not None else {"keep": keep}
    with show.working("Removing heads"):
        return prune_given(live, mask, out, source=model, revision=how.revision, arguments=said, **work)


def _searched(
    method: str,
    model: str,
    how: options.Loading,
    remove: str | None,
    keep: str | None,
    out: Path,
    saving: dict[str, Any],
    search: dict[str, Any],
) -> Any:
    work: data.TaskText | None = search.pop("work")
    if work is None or remove is not None or keep is None:
        raise click.UsageError(f"--method {method} needs --keep N or N%, --task and --data, and no --remove.")
    from headcount.cli import show
    from headcount.methods.given import save_pruned
    from headcount.methods.method import prune

    budget, step = _budget(keep), _budget(search.pop("step"), "--step").share
    if step is None:
        raise click.UsageError("--step is a share of the heads, such as 10%.")
    kinds = search.pop("kinds")
    with show.working(f"Loading {model}"):
        task, measure_on = work.both(model, how)
        live = how.load(model, task=work.task)
    with show.Bars() as bars:
        asked = {"kinds": _names(kinds) or None, "step": step, "measure_on": measure_on, "inplace": True}
        result = prune(method, live, task, budget=budget, progress=bars.show, **asked, **search)
    result.record.signature = replace(result.record.signature, model=model)
    save_pruned(result.model, out, result.record, source=model, revision=how.revision, **saving)
    return result.record


def _budget(text: str, option: str = "--keep") -> Any:
    """10 or 40%."""
    from headcount.selection.budget import Budget

    try:
        return Budget(share=float(text[:-1]) / 100) if text.endswith("%") else Budget(heads=int(text))
    except ValueError as error:
        said = str(error) if "between" in str(error) or "whole" in str(error) else "expected a number or a percentage"
        raise click.UsageError(f"{option} {text}: {said} (10 or 40%).") from error


def _show(name: str, out: Path, parts: dict[str, Any]) -> None:
    from headcount.cli import show

    console = show.console()
    verified = ", verified" if parts["verified"] else ""
    show.title(console, name, f"{len(parts['removed'])} of {parts['heads']} heads removed{verified}")
    if "curve" in parts:
        console.print(show.curve_table(parts))
        console.print()
    console.print(show.cost_table(parts["cost"]))
    show.line(console, f"\nSaved in {out}. {_LOADED_BY[parts['loaded_by']].format(out=str(out))}")
    show.line(console, f"Next: headcount inspect {shlex.quote(str(out))}", dim=True)


def _names(heads: str | None) -> list[str]:
    return [name.strip() for name in (heads or "").split(",") if name.strip()]
