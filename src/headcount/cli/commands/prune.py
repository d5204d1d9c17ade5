"""headcount prune: cut heads out of a model and save the smaller one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from headcount.cli import data, options
from headcount.registry import Registry

# Folders that are at home elsewhere, listed here without importing torch for --help.
_METHODS: Registry[Any] = Registry("method", "headcount.methods", "METHOD")
_SCORES: Registry[Any] = Registry("score", "headcount.scores", "SCORE")
_COMPENSATIONS: Registry[Any] = Registry("compensation", "headcount.surgery.compensations", "COMPENSATION")
_VARIANTS = ("default", "paper", "voita2019-code")  # as in probes/gated.py
_POSITIVE = click.FloatRange(0, min_open=True)
_LEARNING = ("l0", "subset")
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
    help="Heads to keep, all others go; with --method, how many: 10, 40%, encoder=10 or encoder=8,cross=50%; or what "
    "the smaller model may cost: 90%params, 5Mparams, 80%flops, 2Gflops, 75%ms, 12.5ms.",
)
@click.option("--method", type=click.Choice(_METHODS.names()), help="Find the heads to remove on data.")
@click.option(
    "--order", default="gradient", show_default=True, type=click.Choice(_SCORES.names()), help="Score (rank)."
)
@click.option("--recompute", is_flag=True, help="Score again after each step (rank).")
@click.option("--step", default="10%", show_default=True, help="Heads to mask at a time (rank).")
@click.option("--rearrange/--no-rearrange", default=True, show_default=True, help="Within each layer (fisher).")
@click.option(
    "--candidates", default=6, show_default=True, type=click.IntRange(1), help="Heads tried at each step (greedy)."
)
@click.option("--group", default=1, show_default=True, type=click.IntRange(1), help="Heads of each step (greedy).")
@click.option(
    "--compensate",
    type=click.Choice(_COMPENSATIONS.names()),
    help="Make up for the heads that go, without training, folded into plain weights; needs --task and --data. "
    "none if not given, lstsq with greedy.",
)
@click.option("--add-bias", is_flag=True, help="Give output projections without a bias one to compensate with.")
@click.option("--calibrate-split", help="Part of the data to compensate on; the one scores are taken on if not given.")
@click.option("--kinds", help="Kinds of heads that may go, such as encoder,cross; all if not given.")
@click.option(
    "--rule", default="top", show_default=True, type=click.Choice(["top", "uniform"]), help="Where heads stay."
)
@click.option("--at-least", default=0, show_default=True, type=click.IntRange(0), help="Heads that every layer keeps.")
@click.option(
    "--unit", default="head", show_default=True, type=click.Choice(["head", "group"]),
    help="What goes at a time: heads, or whole groups that share a key/value head (rank).",
)  # fmt: skip
@click.option("--train-split", default="train", show_default=True, help="Part of the data to learn on (l0, subset).")
@click.option("--train-limit", type=click.IntRange(1), help="Learn on so many texts at most (l0, subset).")
@click.option("--penalty", metavar="LAMBDA,..", help="Factor of the penalty instead of --keep; several: a sweep (l0).")
@click.option("--variant", type=click.Choice(_VARIANTS), help="Of the gates (l0).")
@click.option("--pipelined", is_flag=True, help="Learn the choice with the weights as they are (subset).")
@click.option("--straight-through", is_flag=True, help="Gates of 0 and 1, relaxed gradients; a control (subset).")
@click.option("--hot", type=_POSITIVE, help="First temperature (subset).")
@click.option("--cold", type=_POSITIVE, help="Last temperature (subset).")
@click.option("--fresh", is_flag=True, help="Begin from new random weights; a control (l0, subset).")
@click.option("--steps", type=click.IntRange(1), help="Steps with gates (l0, subset).")
@click.option("--tune", type=click.IntRange(0), help="Steps of fine-tuning after removal (l0, subset).")
@click.option(
    "--distill", metavar="SHARE", type=click.FloatRange(0, 1),
    help="Share of the loss that asks for what MODEL predicts, 0 to 1; 0 if not given (l0, subset).",
)  # fmt: skip
@click.option("--rate", type=_POSITIVE, help="Learning rate of the weights (l0, subset).")
@click.option("--gate-rate", type=_POSITIVE, help="Learning rate of the gates (l0, subset).")
@click.option("--warmup", type=click.IntRange(1), help="Steps of warm-up (l0, subset).")
@click.option("--batch", type=click.IntRange(1), help="Source tokens of a step (l0, subset).")
@click.option("--chunk", type=click.IntRange(1), help="Source tokens run at once (l0, subset).")
@click.option("--seed", type=click.IntRange(0), help="Of gates and data order (l0, subset).")
@click.option("--save-seconds", type=_POSITIVE, help="How often to save a state to go on from (l0, subset).")
@data.tasked(split="dev", required=False, measured=f"{data.HELD_OUT} (l0, subset: the one of --split)")
@click.option("--out", required=True, type=options.FOLDER, help="Folder for the smaller model and record.json.")
@click.option("--overwrite", is_flag=True, help="Replace a checkpoint that is in the folder.")
@click.option("--standalone", is_flag=True, help="Add code that loads the model without headcount.")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Compare masked and pruned model before saving; what fails goes to OUT.unverified.",
)
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
    --data). With --compensate the heads that stay make up for those that go, as far as they can. The methods l0 and
    subset train: the same command again goes on where it was interrupted.
    """
    from headcount.cli import show

    if overwrite and method in _LEARNING:
        raise click.UsageError(f"--method {method} goes on in a folder it has begun; --overwrite is not for it.")
    asked = _Asked(model, how, remove, keep, out)
    saving = {"standalone": standalone, "overwrite": overwrite}
    cutting = {"verify": verify, "length": length}
    with options.reserved(out, shared=len(_factors(search["penalty"])) > 1):  # processes share the factors of a sweep
        record = _pruned(method, asked, saving, cutting, search)
    if as_json:
        show.json(show.console(), record)
    elif "sweep" in record.parts:
        _show_sweep(out, record)
    else:
        _show(out, record)


@dataclass(frozen=True)
class _Asked:
    """Which heads of which model go, and where the smaller one goes to."""

    model: str
    how: options.Loading
    remove: str | None
    keep: str | None
    out: Path


def _pruned(
    method: str | None, asked: _Asked, saving: dict[str, Any], cutting: dict[str, Any], search: dict[str, Any]
) -> Any:
    """The record of a smaller model that is saved."""
    from headcount.checkpoints.save import check_target

    if method in _LEARNING:
        return _learned(method, asked, saving, {**search, **cutting})
    check_target(asked.out, saving["overwrite"])  # a wrong folder is said before a large model is loaded
    if method is not None:
        return _searched(method, asked, saving, {**search, **cutting})
    making_up = {name: search.pop(name) for name in ("work", "compensate", "add_bias", "calibrate_split")}
    options.refuse(search, "goes with --method: heads that are named need no search")
    return _given(asked, {**saving, **cutting}, **making_up)


def _given(
    asked: _Asked,
    cutting: dict[str, Any],
    *,
    work: data.TaskText | None,
    compensate: str | None,
    add_bias: bool,
    calibrate_split: str | None,
) -> Any:
    model, how, remove, keep = asked.model, asked.how, asked.remove, asked.keep
    if (remove is None) == (keep is None) or not _names(remove or keep):
        raise click.UsageError("Give either --remove or --keep, a list of heads such as encoder.0.3,encoder.1.*")
    from headcount.cli import show
    from headcount.methods.given import prune_given
    from headcount.sites.locate import locate

    compensate = compensate or "none"
    if compensate != "none" and work is None:
        raise click.UsageError(f"--compensate {compensate} needs --task and --data: texts to calibrate on.")
    with show.working(f"Loading {model}"):
        task = work.elsewhere(None, calibrate_split).build(model, how) if work else None
        live = how.load(model, task=work.task if work else None)
    sites = locate(live)
    mask = sites.mask(off=_names(remove)) if remove is not None else sites.mask(keep=_names(keep))
    said = {"remove": remove} if remove is not None else {"keep": keep}
    making_up: dict[str, Any] = {"compensate": compensate, "add_bias": add_bias}
    where: dict[str, Any] = {"source": model, "revision": how.revision}
    with show.working("Removing heads"):
        arguments = {**said, **making_up}
        return prune_given(live, mask, asked.out, **where, arguments=arguments, task=task, **making_up, **cutting)


def _searched(method: str, asked: _Asked, saving: dict[str, Any], search: dict[str, Any]) -> Any:
    model, how, keep = asked.model, asked.how, asked.keep
    work: data.TaskText | None = search.pop("work")
    if work is None or asked.remove is not None or keep is None:
        raise click.UsageError(f"--method {method} needs --keep N or N%, --task and --data, and no --remove.")
    from headcount.cli import show
    from headcount.errors import VerificationError
    from headcount.methods.given import save_pruned
    from headcount.methods.method import prune

    budget, kind = _budgets(keep)
    step = _budget(search.pop("step"), "--step").share
    if step is None:
        raise click.UsageError("--step is a share of the heads, such as 10%.")
    kinds, calibrate_split = _kinds(search.pop("kinds"), kind), search.pop("calibrate_split")
    with show.working(f"Loading {model}"):
        chosen, measured = work.parts()
        task, measure_on = chosen.build(model, how), measured.build(model, how)
        calibrate_on = chosen.elsewhere(None, calibrate_split).build(model, how) if calibrate_split else None
        live = how.load(model, task=work.task)
    told = {"kinds": _names(kinds) or None, "measure_on": measure_on, "calibrate_on": calibrate_on, "inplace": True}
    with show.Bars() as bars:
        search = _fitting(method, {**search, "step": step})
        try:
            result = prune(method, live, task, budget=budget, progress=bars.show, **told, **search)
        except VerificationError as error:
            result = error.result  # saved aside, and raised again, by save_pruned
    result.record.signature = replace(result.record.signature, model=model)
    save_pruned(result.model, asked.out, result.record, source=model, revision=how.revision, **saving)
    return result.record


def _fitting(method: str, search: dict[str, Any]) -> dict[str, Any]:
    """The options that a method takes; one that was given and belongs to another method is an error."""
    import inspect

    from headcount.methods.method import methods

    taken = set(inspect.signature(methods[method]).parameters)
    options.refuse([name for name in search if name not in taken], f"is not an option of --method {method}")
    return {name: value for name, value in search.items() if name in taken and value is not None}


def _learned(method: str, asked: _Asked, saving: dict[str, Any], search: dict[str, Any]) -> Any:
    model, how, keep, out = asked.model, asked.how, asked.keep, asked.out
    work: data.TaskText | None = search.pop("work")
    train_split, limit = search.pop("train_split"), search.pop("train_limit")
    search = _fitting(method, search)
    factors = _factors(search.pop("penalty", None))
    if work is None or asked.remove is not None or (keep is None) == (not factors):
        either = " or --penalty LAMBDA" if method == "l0" else ""
        raise click.UsageError(f"--method {method} needs --keep N or N%{either}, --task and --data, and no --remove.")
    from headcount.cli import show
    from headcount.studies.learned_pruning import Saving, prune_in_folder, sweep

    budget, kind = _budgets(keep) if keep else (None, None)
    kinds = _names(_kinds(search.pop("kinds", None), kind)) or None
    with show.working(f"Loading {model}"):
        measure_on = work.elsewhere(None, work.measured).build(model, how)
        task = replace(work, split=train_split, limit=limit).build(model, how)
        live = how.load(model, task=work.task)
    place = Saving(model, how.revision, saving["standalone"])
    with show.Bars() as bars:
        # what decides the numbers besides the options of the method
        data_asked = {"quality": work.quality, "max_length": work.max_length}
        told = {
            "measure_on": measure_on,
            "progress": bars.show,
            "plain": data_asked,
            "budget": budget,
            "kinds": kinds,
            **search,
        }
        if len(factors) > 1:
            return sweep(method, live, task, out, place, penalties=factors, **told)
        told |= {"penalty": factors[0]} if factors else {}
        return prune_in_folder(method, live, task, out, place, inplace=True, **told)


def _factors(text: str | None) -> list[float]:
    try:
        return [float(part) for part in _names(text)]
    except ValueError as error:
        raise click.UsageError(f"--penalty {text}: expected numbers such as 0.01 or 0.01,0.02,0.05.") from error


def _budgets(text: str) -> tuple[Any, str | None]:
    """10 or 40%; encoder=10, which is a budget and a kind; encoder=8,cross=50%, a budget for each kind."""
    if "=" not in text:
        return _budget(text), None
    parts = [part.partition("=") for part in _names(text)]
    found = {kind.strip(): _budget(amount.strip()) for kind, _, amount in parts}
    if len(found) < len(parts) or not all(found):
        raise click.UsageError(f"--keep {text}: every kind once, such as encoder=8,cross=50%.")
    return (next(iter(found.values())), next(iter(found))) if len(found) == 1 else (found, None)


def _kinds(asked: str | None, kept: str | None) -> str | None:
    """The kinds that may lose heads; --kinds and --keep KIND=N must not speak of different ones."""
    if asked and kept and _names(asked) != [kept]:
        raise click.UsageError(f"--keep is of {kept}, --kinds of {asked}: give one of them.")
    return asked or kept


def _budget(text: str, option: str = "--keep") -> Any:
    """10, 40%, 90%params."""
    from headcount.selection.budget import Budget

    try:
        found = Budget.parse(text)
    except ValueError as error:
        raise click.UsageError(f"{option} {text}: {error}") from error
    if found.share == 0 or found.heads == 0:
        nothing = "nothing would be left" if option == "--keep" else "nothing would go"
        raise click.UsageError(f"{option} {text}: {nothing}. Give a number above 0, such as 10 or 40%.")
    return found


def _show(out: Path, record: Any) -> None:
    from headcount.cli import show

    console = show.console()
    show.result(console, record)
    show.line(console, f"\nSaved in {out}. {_LOADED_BY[record.parts['loaded_by']].format(out=str(out))}")
    show.line(console, f"Next: headcount inspect {shlex.quote(str(out))}", dim=True)


def _names(heads: str | None) -> list[str]:
    return [name.strip() for name in (heads or "").split(",") if name.strip()]


def _show_sweep(out: Path, record: Any) -> None:
    from headcount.cli import show

    console, elsewhere = show.console(), record.parts["elsewhere"]
    show.result(console, record)
    if elsewhere:
        show.line(console, f"Another process works on: {', '.join(f'{value:g}' for value in elsewhere)}")
    show.line(console, f"\nSaved in {out}, a folder for each lambda.")
    show.line(console, f"Next: headcount inspect {shlex.quote(str(out))}/LAMBDA", dim=True)
