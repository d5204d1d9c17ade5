"""Training a translation model from text to checkpoint: vocabulary, ids, the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelerate import Accelerator
from torch import nn

from headcount import journal
from headcount.checkpoints.chosen_on import read_chosen_on
from headcount.checkpoints.companions import load_tokenizer
from headcount.corpora.encoded import encode, sides
from headcount.corpora.parallel import Parallel
from headcount.corpora.vocabulary import learn_vocabulary
from headcount.errors import CorpusError, HeadcountError, UsageError
from headcount.record import Record
from headcount.record.results.train import TrainingRun
from headcount.studies.conclusion import conclude, earlier_record
from headcount.tasks.batch import fingerprint
from headcount.tasks.translation import Translation
from headcount.training.recipe import Recipe
from headcount.training.run import Run, Watch
from headcount.training.transformer import Size, new_translation_model, without_heads_like

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

_SPLITS = ("train", "dev")
_WATCHED = ("loss", "bleu")


@dataclass(frozen=True)
class TranslationSettings:
    """Everything that decides the result; a folder is resumed only with the settings it was started with."""

    data: str
    size: Size
    recipe: Recipe
    vocabulary: int
    shared: bool = False  # one vocabulary for both sides; models with norm "pre" have no other
    lowercase: bool = False
    max_length: int = 256  # tokens; longer sentences are skipped in training, and truncated elsewhere
    dev_bleu: bool = False  # decode the development data after every epoch
    precision: str = "no"  # mixed precision, as Accelerate names it
    like: str | None = None  # folder of a pruned model whose heads, size and vocabulary to use

    @property
    def one_vocabulary(self) -> bool:
        return self.shared or self.size.norm == "pre"


def train_translation(
    data: Parallel,
    out: Path,
    settings: TranslationSettings,
    *,
    accelerator: Accelerator | None = None,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
    snapshots: int = 0,
) -> Record[TrainingRun] | None:
    """Train to the end of the recipe, resuming from the folder. Returns the record.

    snapshots: models to save within the first epoch, after 1/2, 1/4 and so on of it.
    """
    _check_watched(settings.recipe)
    accelerator = accelerator or Accelerator(mixed_precision=settings.precision)
    chosen_on = read_chosen_on(settings.like or "")  # by the pruned model whose heads the new one has
    run = Run(out, settings, settings.recipe, accelerator, watch or Watch(), save_seconds, snapshots, chosen_on)
    identity: dict[str, Any] = {}
    if accelerator.is_main_process:
        run.watch.message("reading the data")
        identity = _identity(data)  # before the folder is started, so that unreadable data leaves no folder
    with run.claimed():
        return _train(data, run, identity)


def _check_watched(recipe: Recipe) -> None:
    """Raise before any work: the best epoch is looked for when the first one is over."""
    if recipe.watch not in _WATCHED:
        raise UsageError(
            f"Translation cannot be watched by {recipe.watch}: watch (--watch) must be one of {', '.join(_WATCHED)}."
        )


def _train(data: Parallel, run: Run, identity: Mapping[str, object]) -> Record[TrainingRun] | None:
    settings, accelerator = run.settings, run.accelerator
    if accelerator.is_main_process:
        journal.claim(run.work, "data.json", identity)
        try:
            _prepare(data, run.work, settings, run.watch)
        except HeadcountError:
            run.abandon()
            raise
    accelerator.wait_for_everyone()
    earlier = earlier_record(run)
    if earlier is not None:
        return earlier if accelerator.is_main_process else None
    tokenizer = load_tokenizer(str(run.work / "vocabulary"))
    train = _task(data, "train", run.work, tokenizer, settings)
    dev = _task(data, "dev", run.work, tokenizer, settings)
    model = new_translation_model(settings.size, tokenizer, seed=settings.recipe.seed)
    if settings.like:
        model = without_heads_like(model, settings.like)

    def judge(live: nn.Module) -> dict[str, float]:
        return _judge(live, dev, settings)

    standing = run.train(model, train, judge, width=settings.size.width, tokenizer=tokenizer, dev=dev)
    skipped = {split: dict(reasons) for split, reasons in data.skipped.items()}
    dropped = len(data["train"]) - len(train)
    if dropped:
        skipped.setdefault("train", {})["too many tokens"] = dropped
    return conclude(
        run, standing, judge, tokenizer, dev, task="translation", languages=tuple(data.languages),
        texts={"train": len(train), "dev": len(dev)}, skipped=skipped,
    )  # fmt: skip


def _identity(data: Parallel) -> dict[str, Any]:
    """Identity of the data of a run: sizes and text of both splits."""
    for split in _SPLITS:
        if split not in data.splits:
            raise CorpusError(f"Training needs the splits train and dev; the data has {', '.join(data.splits)}.")
    sizes = {split: len(data[split]) for split in _SPLITS}
    return sizes | {f"fingerprint of the text of {split}": _text_hash(data[split]) for split in _SPLITS}


def _text_hash(pairs: Dataset) -> str:
    return fingerprint(text for column in ("source", "target") for text in _texts(pairs, column))


def _prepare(data: Parallel, work: Path, settings: TranslationSettings, watch: Watch) -> None:
    """Learn the vocabulary and encode the data, once for a folder."""
    if settings.like and not (work / "vocabulary").is_dir():
        with journal.new_folder(work / "vocabulary") as fresh:
            load_tokenizer(settings.like).save_pretrained(fresh)
    if not (work / "vocabulary").is_dir():
        watch.message("learning the vocabulary")
        source, target = (_texts(data["train"], side) for side in ("source", "target"))
        learn_vocabulary(
            source, target, work / "vocabulary", size=settings.vocabulary, shared=settings.one_vocabulary,
            lowercase=settings.lowercase,
        )  # fmt: skip
    tokenizer = load_tokenizer(str(work / "vocabulary"))
    for split in _SPLITS:
        watch.message(f"encoding {split}")
        if not len(_ids(data, split, work, tokenizer, settings)):
            raise CorpusError(f"No pair of {split} has at most {settings.max_length} tokens on both sides.")


def _ids(
    data: Parallel, split: str, work: Path, tokenizer: PreTrainedTokenizerBase, settings: TranslationSettings
) -> Dataset:
    file = work / f"{split}.arrow"
    return encode(data[split], tokenizer, max_length=settings.max_length, drop=split == "train", file=file)


def _texts(pairs: Dataset, column: str) -> Any:
    return (text for batch in pairs.iter(1000) for text in batch[column])


def _task(
    data: Parallel, split: str, work: Path, tokenizer: PreTrainedTokenizerBase, settings: TranslationSettings
) -> Translation:
    texts = {"source": (), "target": ()} if split == "train" else data[split][:]  # train: only ids are needed
    return Translation(
        **texts,
        tokenizer=tokenizer,
        smoothing=settings.recipe.smoothing,
        lowercase=settings.lowercase,
        encoded=sides(_ids(data, split, work, tokenizer, settings)),
    )


def _judge(model: nn.Module, dev: Translation, settings: TranslationSettings) -> dict[str, float]:
    measured = dev.held_out(model)
    if settings.dev_bleu or settings.recipe.watch == "bleu":
        measured["bleu"] = dev.quality(model).value
    return measured
