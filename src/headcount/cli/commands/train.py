"""headcount train: a translation model from parallel text."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headcount.cli import data, options

_PRESETS = ("tiny", "small", "base", "big")  # as in training/preset.py, listed here without importing torch
_SIZE = ("encoder_layers", "decoder_layers", "heads", "width", "inner", "dropout")
_RECIPE = (
    "batch", "chunk", "factor", "warmup", "cooldown", "steps", "epochs", "patience", "watch", "average", "smoothing",
    "clip", "seed",
)  # fmt: skip
_COUNT, _ANY = click.IntRange(1), click.IntRange(0)
_SHARE, _POSITIVE = click.FloatRange(0, 1, max_open=True), click.FloatRange(0, min_open=True)


@click.command("train")
@data.parallel
@click.option("--out", required=True, type=options.FOLDER, help="Folder for the model; one begun before goes on.")
@click.option("--preset", default="small", show_default=True, type=click.Choice(_PRESETS), help="Size and recipe.")
@click.option("--encoder-layers", type=_COUNT)
@click.option("--decoder-layers", type=_COUNT)
@click.option("--heads", type=_COUNT, help="Attention heads of each layer.")
@click.option("--width", type=_COUNT, help="Width of the model (d_model).")
@click.option("--inner", type=_COUNT, help="Width of its feed-forward layers.")
@click.option("--dropout", type=_SHARE)
@click.option("--vocabulary", type=click.IntRange(8), help="Pieces of each side.")
@click.option("--shared", is_flag=True, help="One vocabulary and one embedding for both sides.")
@click.option("--lowercase", is_flag=True, help="Fold case on both sides, in the model and in BLEU.")
@click.option("--batch", type=_COUNT, help="Source tokens of a step, over all processes.")
@click.option("--chunk", type=_COUNT, help="Source tokens run through the model at once.")
@click.option("--factor", type=_POSITIVE, help="Factor of the learning rate.")
@click.option("--warmup", type=_COUNT, help="Steps of warm-up.")
@click.option("--cooldown", type=_ANY, help="Steps at the end over which the learning rate falls to zero.")
@click.option("--steps", type=_COUNT, help="Stop after so many steps.")
@click.option("--epochs", type=_COUNT, help="Stop after so many passes over the data.")
@click.option("--patience", type=_ANY, help="Stop after so many epochs without a better one.")
@click.option("--watch", type=click.Choice(["loss", "bleu"]), help="What makes an epoch better on dev.")
@click.option("--average", type=_COUNT, help="Epochs at the end to average, if that is better than the best one.")
@click.option("--smoothing", type=_SHARE, help="Label smoothing.")
@click.option("--clip", type=click.FloatRange(0), help="Largest norm of the gradient; 0: any.")
@click.option("--seed", type=_ANY)
@click.option("--dev-bleu", is_flag=True, help="Translate dev after every epoch.")
@click.option(
    "--precision", default="no", show_default=True, type=click.Choice(["no", "bf16", "fp16"]), help="Mixed precision."
)
@click.option(
    "--save-seconds", default=60.0, show_default=True, type=_POSITIVE, help="How often to save a state to go on from."
)
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard events too (needs the package tensorboard).")
def COMMAND(  # noqa: N802
    text: data.ParallelText, out: Path, preset: str, save_seconds: float, tensorboard: bool, **given: Any
) -> None:
    """Train a translation model: vocabulary, Transformer, checkpoints of every epoch, and the best of them.

    The same command again goes on where it was interrupted. On several processes or machines:
    accelerate launch -m headcount.cli.main train ...
    """
    from headcount.cli import show
    from headcount.studies.translation import train_translation
    from headcount.training.run import Watch

    settings = _settings(text, preset, given)
    with show.working("Reading the data"):
        pairs = text.read()
    with show.Training(out / "training" / "tensorboard" if tensorboard else None) as shown:
        watch = Watch(step=shown.step, said=shown.say)
        record = train_translation(pairs, out, settings, watch=watch, save_seconds=save_seconds)
    if record.parts:
        _show(record, text, out)


def _settings(text: data.ParallelText, preset: str, given: dict[str, Any]) -> Any:
    from headcount.studies.translation import Settings
    from headcount.training.preset import PRESETS

    chosen = PRESETS[preset]
    asked = {name: value for name, value in given.items() if value is not None}
    recipe = {name: asked[name] for name in _RECIPE if name in asked}
    if "batch" in recipe and "chunk" not in recipe:
        recipe["chunk"] = min(recipe["batch"], chosen.recipe.chunk)
    return Settings(
        data=text.data,
        size=replace(chosen.size, **{name: asked[name] for name in _SIZE if name in asked}),
        recipe=replace(chosen.recipe, **recipe),
        vocabulary=asked.get("vocabulary", chosen.vocabulary),
        shared=given["shared"],
        lowercase=given["lowercase"],
        dev_bleu=given["dev_bleu"],
        precision=given["precision"],
    )


def _show(record: Any, text: data.ParallelText, out: Path) -> None:
    from headcount.cli import show

    console, parts = show.console(), record.parts
    console.print(show.epoch_table(parts["epochs"]))
    console.print(f"\n{parts['steps']} steps in {parts['seconds'] / 60:.1f} minutes; kept: {parts['chosen']}")
    for split, reasons in parts["skipped"].items():
        for reason, count in reasons.items():
            console.print(f"{split}: {count} pairs left out ({reason})", style="yellow")
    show.line(console, f"Next: headcount evaluate {shlex.quote(str(out))} {text.as_options()}", dim=True)
