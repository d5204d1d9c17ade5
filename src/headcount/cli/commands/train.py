"""headcount train: a translation model from parallel text, or a model fine-tuned on labelled or plain text."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from headcount.cli import data, options

_PRESETS = ("tiny", "small", "base", "big")  # as in training/preset.py, listed here without importing torch
_SIZE = (
    "encoder_layers", "decoder_layers", "heads", "width", "inner", "norm", "dropout", "attention_dropout",
    "activation_dropout",
)  # fmt: skip
_RECIPE = (
    "batch", "chunk", "factor", "rate", "warmup", "cooldown", "steps", "epochs", "patience", "watch", "average",
    "smoothing", "clip", "seed",
)  # fmt: skip
# of --from alone
_TUNING = ("dev_split", "text_column", "label", "pair", "limit", "max_length", "examples", "metric")
_FROM_NOTHING = (*_SIZE, "preset", "vocabulary", "shared", "lowercase", "dev_bleu", "factor")  # of translation alone
_COUNT, _ANY = click.IntRange(1), click.IntRange(0)
_SHARE, _POSITIVE = click.FloatRange(0, 1, max_open=True), click.FloatRange(0, min_open=True)


@click.command("train")
@click.option("--task", default="translation", show_default=True, type=click.Choice(data.TASKS.names()))
@click.option("--from", "start", metavar="MODEL", help="Model to fine-tune (classification, language-modelling).")
@click.option(
    "--like",
    metavar="PRUNED",
    help="A new model with the heads, sizes and vocabulary of this pruned one; a control (translation).",
)
@data.parallel
@options.out_folder("Folder for the model; one begun before goes on.", required=True)
@click.option("--preset", default="small", show_default=True, type=click.Choice(_PRESETS), help="Size and recipe.")
@click.option("--dev-split", default="dev", show_default=True, help="Part of the data to watch training on.")
@click.option("--text", "text_column", help="Column with the text (classification, language-modelling).")
@click.option("--label", help="Column with the label (classification).")
@click.option("--pair", help="Column with the second text (classification).")
@click.option("--limit", type=_COUNT, help="Train on so many texts at most (classification, language-modelling).")
@click.option("--max-length", default=256, show_default=True, type=click.IntRange(2), help="Tokens of a text.")
@click.option("--encoder-layers", type=_COUNT, help="Layers of the encoder.")
@click.option("--decoder-layers", type=_COUNT, help="Layers of the decoder.")
@click.option("--heads", type=_COUNT, help="Attention heads of each layer.")
@click.option("--width", type=_COUNT, help="Width of the model (d_model).")
@click.option("--inner", type=_COUNT, help="Width of its feed-forward layers.")
@click.option(
    "--norm",
    type=click.Choice(["pre", "post"]),
    help="Normalise before each sublayer (pre, the default: one vocabulary for both sides) or after it (post).",
)
@click.option("--dropout", type=_SHARE, help="Dropout of residuals.")
@click.option("--attention-dropout", type=_SHARE, help="Dropout of attention weights.")
@click.option("--activation-dropout", type=_SHARE, help="Dropout inside the feed-forward layers.")
@click.option("--vocabulary", type=click.IntRange(8), help="Pieces: of both sides together, or of each (--norm post).")
@click.option("--shared", is_flag=True, help="One vocabulary and one embedding for both sides; always with --norm pre.")
@click.option("--lowercase", is_flag=True, help="Fold case on both sides, in the model and in BLEU.")
@click.option("--examples", type=_COUNT, help="Texts of a step on average (fine-tuning); 32 without it and --batch.")
@click.option("--batch", type=_COUNT, help="Source tokens of a step, over all processes.")
@click.option("--chunk", type=_COUNT, help="Source tokens run through the model at once.")
@click.option("--factor", type=_POSITIVE, help="Factor of the learning rate of Vaswani et al. 2017; instead of --rate.")
@click.option("--rate", type=_POSITIVE, help="Learning rate after warm-up.")
@click.option("--warmup", type=_COUNT, help="Steps of warm-up; 6% of the run if not given (fine-tuning).")
@click.option("--cooldown", type=_ANY, help="Steps at the end over which the learning rate falls to zero.")
@click.option("--steps", type=_COUNT, help="Stop after so many steps.")
@click.option("--epochs", type=_COUNT, help="Stop after so many passes over the data.")
@click.option("--patience", type=_ANY, help="Stop after so many epochs without a better one.")
@click.option("--metric", help="What dev is measured in (fine-tuning): accuracy, f1, matthews, perplexity, loss.")
@click.option(
    "--watch",
    type=click.Choice(["loss", "bleu", "accuracy", "f1", "matthews"]),
    help="What makes an epoch better on dev.",
)
@click.option("--average", type=_COUNT, help="Epochs at the end to average, if that is better than the best one.")
@click.option("--smoothing", type=_SHARE, help="Label smoothing.")
@click.option("--clip", type=click.FloatRange(0), help="Largest norm of the gradient; 0: any.")
@click.option("--seed", type=_ANY, help="Random seed of first weights, data order and dropout; 0 if not given.")
@click.option("--dev-bleu", is_flag=True, help="Translate dev after every epoch.")
@click.option(
    "--precision", default="no", show_default=True, type=click.Choice(["no", "bf16", "fp16"]), help="Mixed precision."
)
@click.option(
    "--save-seconds", default=60.0, show_default=True, type=_POSITIVE, help="How often to save a state to go on from."
)
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard events too (needs the package tensorboard).")
def COMMAND(  # noqa: N802
    task: str,
    start: str | None,
    like: str | None,
    text: data.ParallelText,
    out: Path,
    preset: str,
    save_seconds: float,
    tensorboard: bool,
    **given: Any,
) -> None:
    """Train a translation model: vocabulary, Transformer, checkpoints of every epoch, and the best of them.

    With --task and --from, fine-tune a model on labelled text (classification) or plain text (language-modelling):
    a folder with train and dev as .tsv, .jsonl or .txt, or hf:NAME.

    The same command again goes on where it was interrupted. On several processes or machines:
    accelerate launch -m headcount train ...
    """
    from headcount.cli import show
    from headcount.training.run import Watch

    if (start is None) != (task == "translation"):
        raise click.UsageError(f"--task {task} {'needs' if start is None else 'starts from nothing, without'} --from.")
    sized = given["shared"] or any(given[name] is not None for name in (*_SIZE, "vocabulary"))
    if like is not None and (task != "translation" or sized):
        raise click.UsageError("--like is for translation, and decides the sizes and the vocabulary of the model.")
    other = _TUNING if start is None else _FROM_NOTHING
    options.refuse(other, f"does nothing with --task {task}")
    if given["examples"] and given["batch"]:
        raise click.UsageError("--examples and --batch both say how large a step is: give one of them.")
    if task == "embedding":
        raise click.UsageError("An embedding model has no objective to be trained on; --task is another one.")
    with show.Training(out / "training" / "tensorboard" if tensorboard else None) as shown:
        options_of_run = {"watch": Watch(step=shown.step, said=shown.say), "save_seconds": save_seconds}
        if start is None:
            record = _translation(text, preset, like, out, given, options_of_run)
        else:
            record = _fine_tuned(task, start, text, out, given, options_of_run)
    if record is not None:
        _show(record, task, text, out)


def _translation(
    text: data.ParallelText,
    preset: str,
    like: str | None,
    out: Path,
    given: dict[str, Any],
    options_of_run: dict[str, Any],
) -> Any:
    from headcount.studies.translation import train_translation

    settings = _settings(text, preset, given)
    if like is not None:
        from headcount.training.transformer import size_like

        settings = replace(settings, like=like, size=size_like(like))
    return train_translation(text.read(), out, settings, **options_of_run)


def _fine_tuned(
    task: str,
    start: str,
    text: data.ParallelText,
    out: Path,
    given: dict[str, Any],
    options_of_run: dict[str, Any],
) -> Any:
    import torch

    from headcount.studies.fine_tuning import EXAMPLES, RECIPE, WARMUP, Settings, fine_tune
    from headcount.studies.held_out import check_apart

    how = options.Loading(None, None, trust_remote_code=False)
    fields = {"text": given["text_column"], "label": given["label"], "pair": given["pair"]}
    metric = {"metric": given["metric"]} if given["metric"] else {}
    train = data.TaskText(task, text, "train", given["limit"], 32, given["max_length"], fields, metric)
    dev = replace(train, split=given["dev_split"], limit=None)
    recipe = replace(RECIPE, **_asked_recipe(given, RECIPE.chunk))
    settings = Settings(
        task, start, text.data, recipe, given["limit"], given["max_length"], given["precision"],
        dev_split=given["dev_split"], columns=fields, metric=given["metric"],
        examples=None if given["batch"] else given["examples"] or EXAMPLES,
        warmup=None if given["warmup"] else WARMUP,
    )  # fmt: skip
    new: dict[str, Any] = {}
    if task == "classification":
        new["classes"] = how.classes(start) or train.labelled().classes
    torch.manual_seed(recipe.seed)  # of a new head
    live = how.load(start, task=task, new_weights="head", **new)
    learned, watched = (part.build(start, how, **new) for part in (train, dev))
    check_apart(learned, watched)
    return fine_tune(live, how.tokenizer(start), learned, watched, out, settings, **options_of_run)


def _asked_recipe(given: dict[str, Any], chunk: int) -> dict[str, Any]:
    recipe = {name: given[name] for name in _RECIPE if given.get(name) is not None}
    if "batch" in recipe and "chunk" not in recipe:
        recipe["chunk"] = min(recipe["batch"], chunk)
    return recipe


def _settings(text: data.ParallelText, preset: str, given: dict[str, Any]) -> Any:
    from headcount.studies.translation import Settings
    from headcount.training.preset import PRESETS

    chosen = PRESETS[preset]
    asked = {name: value for name, value in given.items() if value is not None}
    size = replace(chosen.size, **{name: asked[name] for name in _SIZE if name in asked})
    recipe = chosen.recipe if size.norm == "pre" else chosen.post_norm
    if "steps" in asked:
        recipe = recipe.with_steps(asked["steps"])
    if "factor" in asked and "rate" not in asked:
        recipe = replace(recipe, rate=None)
    return Settings(
        data=" ".join([text.data, *(text.languages or ()), *(text.columns or ())]),
        size=size,
        recipe=replace(recipe, **_asked_recipe(given, recipe.chunk)),
        vocabulary=asked.get("vocabulary", chosen.vocabulary),
        shared=given["shared"],
        lowercase=given["lowercase"],
        dev_bleu=given["dev_bleu"],
        precision=given["precision"],
    )


def _show(record: Any, task: str, text: data.ParallelText, out: Path) -> None:
    from headcount.cli import show

    console = show.console()
    show.result(console, record)
    then = f"evaluate {shlex.quote(str(out))}" + ("" if task == "translation" else f" --task {task}")
    show.line(console, f"Next: headcount {then} {text.as_options()}", dim=True)
