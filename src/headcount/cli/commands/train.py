"""headcount train: a translation model from parallel text, or a model fine-tuned on labelled or plain text."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options

if TYPE_CHECKING:
    from headcount.record import Record

_PRESETS = ("tiny", "small", "base", "big")  # as in training/preset.py, listed here without importing torch
_SIZE = (
    "encoder_layers", "decoder_layers", "heads", "width", "inner", "norm", "dropout", "attention_dropout",
    "activation_dropout",
)  # fmt: skip
_RECIPE = (
    "batch", "chunk", "factor", "rate", "warmup", "cooldown", "steps", "epochs", "patience", "watch", "average",
    "smoothing", "clip", "seed",
)  # fmt: skip
_COLUMNS = ("text_column", "label", "pair")
_TUNING = ("dev_split", *_COLUMNS, "limit", "max_length", "examples", "metric")  # options only for a MODEL
_FROM_NOTHING = (*_SIZE, "preset", "vocabulary", "shared", "lowercase", "dev_bleu", "factor")  # translation only
_SNAPSHOTS = 3  # of a new model
_SHARE, _POSITIVE = options.Real(0, 1, max_open=True), options.Real(0, min_open=True)


@click.command("train")
@click.argument("model", required=False)
@options.choice("--task", data.NAMES, "What to train for; all but translation fine-tune MODEL.", "translation")
@click.option(
    "--like",
    metavar="PRUNED",
    help="Train a new model with the heads, sizes and vocabulary of this pruned one; a control (translation).",
)
@data.source(f"{data.ANY}; it needs train and dev", fields=("languages", "columns", "longest", *_COLUMNS, "limit"))
@click.option(
    "--out", required=True, type=options.FOLDER,
    help="Folder for the model. An unfinished run in it is resumed. With --seeds OUT-0, OUT-1 and so on.",
)  # fmt: skip
@options.choice("--preset", _PRESETS, "Size of the model and training settings.", "small")
@click.option("--dev-split", default="dev", show_default=True, help="Split to monitor training on.")
@options.max_length
@options.integer("--encoder-layers", "Layers of the encoder. Default: of the preset.")
@options.integer("--decoder-layers", "Layers of the decoder. Default: of the preset.")
@options.integer("--heads", "Attention heads of each layer. Default: of the preset.")
@options.integer("--width", "Width of the model (d_model). Default: of the preset.")
@options.integer("--inner", "Width of its feed-forward layers. Default: of the preset.")
@options.choice(
    "--norm",
    ["pre", "post"],
    "Normalise before each sublayer (pre, the default: one vocabulary for both sides) or after it (post).",
)
@click.option("--dropout", type=_SHARE, help="Dropout of residual connections. Default: of the preset.")
@click.option("--attention-dropout", type=_SHARE, help="Dropout of attention weights. Default: of the preset.")
@click.option(
    "--activation-dropout", type=_SHARE, help="Dropout inside the feed-forward layers. Default: of the preset."
)
@options.integer(
    "--vocabulary",
    "Most subword pieces: of both languages together, or of each (--norm post). Default: of the preset.",
    least=8,
)
@click.option(
    "--shared",
    is_flag=True,
    help="Share one vocabulary and one embedding between both languages; always so with --norm pre.",
)
@click.option("--lowercase", is_flag=True, help="Lowercase both languages, in the model and in BLEU.")
@options.integer("--examples", "Mean number of texts per step (fine-tuning). Default: 32, unless --batch is given.")
@options.integer("--batch", "Source tokens per step, over all processes. Default: of the preset.")
@options.integer("--chunk", "Most source tokens in one forward pass. Default: of the preset.")
@click.option(
    "--factor",
    type=_POSITIVE,
    help="Factor of the learning rate of Vaswani et al. 2017; instead of --rate. Default: of the preset.",
)
@click.option(
    "--rate", type=_POSITIVE, help="Learning rate after warm-up. Default: of the preset; 5e-5 for fine-tuning."
)
@options.integer("--warmup", "Warm-up steps. Default: of the preset; 6% of the run for fine-tuning.")
@options.integer(
    "--cooldown", "Steps at the end over which the learning rate decays to zero. Default: of the preset.", least=0
)
@options.integer("--steps", "Stop after this many steps. Default: of the preset.")
@options.integer(
    "--epochs", "Stop after this many passes over the data. Default: no limit, or 2 for fine-tuning without --steps."
)
@options.integer(
    "--patience", "Stop after this many epochs without improvement; 0 never stops. Default: of the preset.", least=0
)
@click.option(
    "--metric",
    help="Metric on the dev split (fine-tuning): accuracy, f1, matthews, perplexity or loss. Default: of the task.",
)
@options.choice(
    "--watch",
    ["loss", "bleu", "accuracy", "f1", "matthews"],
    "Metric on the dev split that selects the best epoch. Default: loss.",
)
@options.integer(
    "--average",
    "Number of last epochs to average, if the average is better than the best epoch. Default: of the preset.",
)
@click.option("--smoothing", type=_SHARE, help="Label smoothing. Default: 0.1 for translation, else 0.")
@click.option(
    "--clip", type=options.Real(0), help="Clip the gradient to this norm; 0 does not clip. Default: of the preset."
)
@options.seed("initial weights, data order and dropout. Default: 0", None)
@click.option(
    "--seeds",
    help="One model for each of these seeds, such as 0-4; processes of the same command share them. Default: --seed.",
)
@click.option("--dev-bleu", is_flag=True, help="Translate dev after every epoch.")
@options.choice("--precision", ["no", "bf16", "fp16"], "Mixed precision.", "no")
@options.save_seconds
@options.integer(
    "--snapshots",
    "Models to keep within the first epoch, after 1/2, 1/4, 1/8 of it and so on. Default: 3; 0 with MODEL.",
    least=0,
)
@click.option("--tensorboard", is_flag=True, help="Also write TensorBoard events (needs the package tensorboard).")
@options.every_row
def COMMAND(
    model: str | None,
    task: str,
    like: str | None,
    source: data.Source,
    out: Path,
    preset: str,
    seeds: str | None,
    save_seconds: float,
    snapshots: int | None,
    tensorboard: bool,
    all_rows: bool,
    **arguments: Any,
) -> None:
    """Train a translation model: vocabulary, Transformer, checkpoints of every epoch, and the best of them.

    With MODEL and --task, fine-tune that model on labelled text (classification) or plain text (language-modelling):
    a folder with train and dev as .tsv, .jsonl or .txt, or hf:NAME.

    If interrupted, run the same command again to resume. On several processes or machines:
    accelerate launch -m headcount train ...
    """
    _check(model, task, like, arguments)
    source = replace(source, lowercase=arguments["lowercase"])  # so that the next command compares as this one

    def train(folder: Path, seed: int | None) -> Record | None:
        from headcount.checkpoints.loading import quiet
        from headcount.cli import show
        from headcount.training.run import Watch

        quiet()
        of_seed = arguments | {"seed": seed}
        with show.Training(folder / "training" / "tensorboard" if tensorboard else None) as display:
            options_of_run = {
                "watch": Watch(step=display.step, message=display.say), "save_seconds": save_seconds,
                "snapshots": snapshots if snapshots is not None else _SNAPSHOTS if model is None else 0,
            }  # fmt: skip
            if model is None:
                return _translation(source, preset, like, folder, of_seed, options_of_run)
            return _fine_tuned(task, model, source, folder, of_seed, options_of_run)

    if seeds is not None:
        _seed_by_seed(train, _seed_numbers(seeds), out, (f"--task {task} " if model else "") + source.as_options())
        return
    with options.reserved(out):
        record = train(out, arguments["seed"])
    if record is not None:
        _show(record, task, source, out, all_rows=all_rows)


def _seed_numbers(seeds: str) -> tuple[int, ...]:
    options.refuse(["seed"], "does nothing with --seeds")
    numbers = options.numbers(seeds, "--seeds")
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise click.UsageError(f"--seeds: expected different whole numbers from 0 on, such as 0-4; got {seeds}.")
    return numbers


def _seed_by_seed(
    train: Callable[[Path, int], Record | None], seeds: Sequence[int], out: Path, data_options: str
) -> None:
    """Train a model for each seed in its own folder, without seeds that other processes work on.

    data_options: task and data of the next command.
    """
    from headcount import processes
    from headcount.cli import show
    from headcount.errors import FolderInUse

    console = show.console()
    folders = {seed: out.with_name(f"{out.name}-{seed}") for seed in seeds}
    elsewhere = []
    for seed, folder in folders.items():
        try:
            with options.reserved(folder):
                record = train(folder, seed)
        except FolderInUse:
            if processes.count() > 1:  # they train one model together
                raise
            elsewhere.append(folder)
            continue
        if record is not None:
            show.line(console, f"{folder}: {record.parts.candidate}, {record.parts.steps} steps")
    for folder in elsewhere:
        show.line(console, f"{folder}: another process is training it")
    models = " ".join(shlex.quote(str(folder)) for folder in folders.values())
    show.line(console, f"Next: headcount study all {models} {data_options} --out DIR", dim=True)


def _check(model: str | None, task: str, like: str | None, arguments: Mapping[str, object]) -> None:
    """Raise for options that exclude each other."""
    from headcount.tasks.task import tasks

    kind = tasks[task]
    if (model is None) != kind.writes:
        raise click.UsageError(
            f"--task {task} needs a MODEL to fine-tune."
            if model is None
            else f"--task {task} trains a new model: leave out MODEL."
        )
    sized = arguments["shared"] or any(arguments[name] is not None for name in (*_SIZE, "vocabulary"))
    if like is not None and (not kind.writes or sized):
        raise click.UsageError(
            "--like is for translation only, and sets the model sizes and vocabulary: leave those options out."
        )
    options.refuse(_TUNING if model is None else _FROM_NOTHING, f"does nothing with --task {task}")
    if arguments["examples"] and arguments["batch"]:
        raise click.UsageError("--examples and --batch both set the size of a step: give only one of them.")
    if arguments["factor"] and arguments["rate"]:
        raise click.UsageError("--factor and --rate both set the learning rate: give only one of them.")
    if not kind.trains:
        raise click.UsageError(f"--task {task} has no training objective; choose another task.")


def _translation(
    source: data.Source,
    preset: str,
    like: str | None,
    out: Path,
    arguments: dict[str, Any],
    options_of_run: dict[str, Any],
) -> Any:
    from headcount.studies.translation import train_translation

    settings = _settings(source, preset, like, arguments)
    return train_translation(source.parallel(), out, settings, **options_of_run)


def _fine_tuned(
    task: str, model: str, source: data.Source, out: Path, arguments: dict[str, Any], options_of_run: dict[str, Any]
) -> Any:
    import torch

    from headcount.studies.fine_tuning import EXAMPLES, RECIPE, WARMUP, FineTuningSettings, fine_tune
    from headcount.tasks.overlap import check_apart

    loading = options.Loading(device="cpu")  # accelerate moves it
    work = data.Workload(task, source, None, 32, arguments["max_length"], arguments["metric"])
    train, dev = work.on("train"), work.on(arguments["dev_split"]).with_limit(None)
    columns = {name: source.columns.get(name) for name in ("text", "label", "pair")}
    asked = _asked_recipe(arguments, RECIPE.chunk)
    recipe = replace(RECIPE, **({"epochs": None} if "steps" in asked else {}) | asked)
    settings = FineTuningSettings(
        task, model, source.data, recipe, source.limit, arguments["max_length"], arguments["precision"],
        dev_split=arguments["dev_split"], columns=columns, metric=arguments["metric"],
        examples=None if arguments["batch"] else arguments["examples"] or EXAMPLES,
        warmup=None if arguments["warmup"] else WARMUP,
    )  # fmt: skip
    new: dict[str, Any] = {}
    if work.kind.labelled:
        new["classes"] = loading.classes(model) or train.source.labelled().classes
    torch.manual_seed(recipe.seed)  # of a new head
    live = loading.load(model, task=task, new_weights="head", **new).float()  # half precision loses small updates
    learned, watched = (part.build(model, loading, **new) for part in (train, dev))
    check_apart(learned, watched)
    return fine_tune(live, loading.tokenizer(model), learned, watched, out, settings, **options_of_run)


def _asked_recipe(arguments: dict[str, Any], chunk: int) -> dict[str, Any]:
    recipe = {name: arguments[name] for name in _RECIPE if arguments.get(name) is not None}
    if "batch" in recipe and "chunk" not in recipe:
        recipe["chunk"] = min(recipe["batch"], chunk)
    return recipe


def _settings(source: data.Source, preset: str, like: str | None, arguments: dict[str, Any]) -> Any:
    from headcount.studies.translation import TranslationSettings
    from headcount.training.preset import PRESETS
    from headcount.training.transformer import size_like

    base = PRESETS[preset]
    changes = {name: value for name, value in arguments.items() if value is not None}
    size = replace(base.size, **{name: changes[name] for name in _SIZE if name in changes})
    size = size if like is None else size_like(like)
    recipe = base.recipe if size.norm == "pre" else base.post_norm
    shared = size.norm == "pre" or arguments["shared"]
    if "steps" in changes:
        recipe = recipe.with_steps(changes["steps"])
    if "factor" in changes and "rate" not in changes:
        recipe = replace(recipe, rate=None)
    return TranslationSettings(
        data=" ".join([source.data, *source.languages, *source.columns.values()]),
        size=size,
        recipe=replace(recipe, **_asked_recipe(arguments, recipe.chunk)),
        vocabulary=changes.get("vocabulary", base.vocabulary if shared else base.vocabulary_of_each),
        shared=arguments["shared"],
        lowercase=arguments["lowercase"],
        dev_bleu=arguments["dev_bleu"],
        precision=arguments["precision"],
        like=like,
    )


def _show(record: Record, task: str, source: data.Source, out: Path, *, all_rows: bool) -> None:
    from headcount.cli import show
    from headcount.tasks.task import tasks

    then = f"evaluate {shlex.quote(str(out))}" + ("" if tasks[task].writes else f" --task {task}")
    show.result(record, all_rows=all_rows, hints=[f"Next: headcount {then} {source.as_options()}"])
