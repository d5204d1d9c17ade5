"""Training a translation model from text to checkpoint: vocabulary, ids, the loop, the better of average and best.

DIR/                 the model with its tokenizer, readable by headcount and by transformers
DIR/record.json      what was measured
DIR/epochs/001/      the model after each epoch
DIR/training/        settings, vocabulary, ids, state to go on from, metrics.jsonl
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelerate import Accelerator
from torch import nn

from headcount import journal
from headcount.checkpoints.companions import load_tokenizer
from headcount.checkpoints.save import save
from headcount.corpora.encoded import encode, sides
from headcount.corpora.parallel import Parallel
from headcount.corpora.vocabulary import learn_vocabulary
from headcount.errors import CorpusError, HeadcountError, UsageError
from headcount.record import Record, Signature
from headcount.sites.fingerprint import weight_hash
from headcount.tasks.translation import Translation
from headcount.training.average import average
from headcount.training.loop import Loop, Report
from headcount.training.progress import Progress
from headcount.training.recipe import Recipe
from headcount.training.transformer import Size, new_translation_model

if TYPE_CHECKING:
    from datasets import Dataset

_SETTINGS = "settings.json"


@dataclass(frozen=True)
class Settings:
    """All that decides what comes out; a folder goes on only with the settings it was begun with."""

    data: str
    size: Size
    recipe: Recipe
    vocabulary: int
    shared: bool = False
    lowercase: bool = False
    max_length: int = 256  # tokens; longer sentences are left out of training, and cut elsewhere
    dev_bleu: bool = False  # decode the development data after every epoch
    precision: str = "no"  # mixed precision, as Accelerate names it


@dataclass
class Watch:
    """What a caller may follow."""

    step: Callable[[Report], None] = lambda _: None
    said: Callable[[str], None] = lambda _: None


def train_translation(
    data: Parallel,
    out: Path,
    settings: Settings,
    *,
    accelerator: Accelerator | None = None,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
) -> Record:
    """Train to the end of the recipe, from wherever the folder stands; the record of what was measured."""
    accelerator, watch = accelerator or Accelerator(mixed_precision=settings.precision), watch or Watch()
    work = out / "training"
    if accelerator.is_main_process:
        _claim(out, settings)
        try:
            _prepare(data, work, settings, watch)
        except HeadcountError:  # nothing was begun: other settings may be tried on this folder
            shutil.rmtree(work)
            raise
    accelerator.wait_for_everyone()
    tokenizer = load_tokenizer(str(work / "vocabulary"))
    train = _task(data, "train", work, tokenizer, settings)
    dev = _task(data, "dev", work, tokenizer, settings)
    model = new_translation_model(settings.size, tokenizer, seed=settings.recipe.seed)
    if accelerator.device.type == "cpu":
        model.set_attn_implementation("eager")  # a tenth faster than torch's own attention on short sentences

    def keep(epoch: int) -> None:
        save(model, out / "epochs" / f"{epoch:03d}", tokenizer=tokenizer, overwrite=True)

    loop = Loop(
        model, train, settings.recipe, work, settings.size.width,
        judge=lambda live: _judge(live, dev, settings),
        keep=keep, accelerator=accelerator, save_seconds=save_seconds, watch=watch.step,
    )  # fmt: skip
    progress = loop.run()
    record = Record("train translation", Signature(arguments=asdict(settings)))
    if accelerator.is_main_process:
        dropped = len(data["train"]) - len(train)
        record = _finish(out, data, dev, tokenizer, settings, progress, dropped)
    accelerator.wait_for_everyone()
    return record


def _claim(out: Path, settings: Settings) -> None:
    """Begin a folder, or make sure that it was begun with the same settings."""
    file = out / "training" / _SETTINGS
    ours = _plain(settings)
    if file.is_file():
        theirs = journal.read_json(file)
        differ = [name for name in ours if theirs.get(name) != ours[name]]
        if differ:
            said = "; ".join(f"{name}: {theirs.get(name)} there, {ours[name]} now" for name in differ)
            raise UsageError(f"{out} was begun with other settings ({said}). Use the same, or another folder.")
        return
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise UsageError(f"{out} holds something else already; give a new folder.")
    journal.write_json(file, ours)


def _plain(settings: Settings) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return found


def _prepare(data: Parallel, work: Path, settings: Settings, watch: Watch) -> None:
    """Vocabulary and ids, once for a folder."""
    for split in ("train", "dev"):
        if split not in data.splits:
            raise CorpusError(f"Training needs the splits train and dev; there are {', '.join(data.splits)}.")
    if not (work / "vocabulary").is_dir():
        watch.said("learning the vocabulary")
        learn_vocabulary(
            _texts(data["train"], "source"),
            _texts(data["train"], "target"),
            work / "vocabulary",
            size=settings.vocabulary,
            shared=settings.shared,
            lowercase=settings.lowercase,
        )
    tokenizer = load_tokenizer(str(work / "vocabulary"))
    for split in ("train", "dev"):
        watch.said(f"encoding {split}")
        if not len(_ids(data, split, work, tokenizer, settings)):
            raise CorpusError(f"No pair of {split} has at most {settings.max_length} tokens on both sides.")


def _ids(data: Parallel, split: str, work: Path, tokenizer: Any, settings: Settings) -> Dataset:
    file = work / f"{split}.arrow"
    return encode(data[split], tokenizer, max_length=settings.max_length, drop=split == "train", file=file)


def _texts(pairs: Dataset, column: str) -> Any:
    return (text for batch in pairs.iter(1000) for text in batch[column])


def _task(data: Parallel, split: str, work: Path, tokenizer: Any, settings: Settings) -> Translation:
    texts = {"source": (), "target": ()} if split == "train" else data[split][:]  # of the first only ids are needed
    return Translation(
        **texts,
        tokenizer=tokenizer,
        smoothing=settings.recipe.smoothing,
        lowercase=settings.lowercase,
        encoded=sides(_ids(data, split, work, tokenizer, settings)),
    )


def _judge(model: nn.Module, dev: Translation, settings: Settings) -> dict[str, float]:
    found = dev.held_out(model)
    if settings.dev_bleu or settings.recipe.watch == "bleu":
        found["bleu"] = dev.quality(model).value
    return found


def _finish(
    out: Path, data: Parallel, dev: Translation, tokenizer: Any, settings: Settings, progress: Progress, dropped: int
) -> Record:
    """Choose between the best epoch and the average of the last ones on the development data, and save."""
    recipe = settings.recipe
    last = range(max(1, progress.epoch - recipe.average + 1), progress.epoch + 1)
    best = progress.best(recipe.watch)
    candidates = {f"epoch {best}": [best], f"average of epochs {last[0]} to {last[-1]}": list(last)}
    models = {
        name: average([out / "epochs" / f"{epoch:03d}" for epoch in epochs]) for name, epochs in candidates.items()
    }
    measured = {name: _judge(model, dev, settings) for name, model in models.items()}
    sign = 1 if recipe.watch == "loss" else -1
    chosen = min(measured, key=lambda name: sign * measured[name][recipe.watch])
    model = models[chosen]
    signature = Signature(settings.data, weight_hash(model), dev.fingerprint, recipe.seed, _plain(settings))
    skipped = {split: dict(reasons) for split, reasons in data.skipped.items()}
    if dropped:
        skipped.setdefault("train", {})["too many tokens"] = dropped
    parts = {
        "chosen": chosen,
        "candidates": measured,
        "epochs": progress.epochs,
        "steps": progress.step,
        "seconds": progress.seconds,
        "languages": list(data.languages),
        "pairs": {split: len(pairs) for split, pairs in data.splits.items()},
        "skipped": skipped,
    }
    record = Record("train translation", signature, parts)
    with journal.new_folder(out / "training" / "final") as fresh:
        save(model, fresh / "model", tokenizer=tokenizer)
    _put(out / "training" / "final" / "model", out)
    shutil.rmtree(out / "training" / "final")
    record.save(out / "record.json")
    return record


def _put(folder: Path, out: Path) -> None:
    """Move a checkpoint's files into a folder, config.json last: it makes the folder a checkpoint."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name == "config.json"):
        file.replace(out / file.name)
