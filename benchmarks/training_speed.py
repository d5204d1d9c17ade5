"""Training tokens per second against Hugging Face's Seq2SeqTrainer: same model, data, loss and mean batch tokens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import transformers
from datasets import Dataset
from transformers import DataCollatorForSeq2Seq, PrinterCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments

from benchmarks import laboratory
from benchmarks.row import Row
from headcount.statistics import Interval
from headcount.timing import interleave
from headcount.training.batching import epoch_steps, padding_share

EXAMPLES, TOKENS = 2500, 1000


def rows() -> Iterator[Row]:
    transformers.utils.logging.disable_progress_bar()
    data, model = laboratory.task("train", EXAMPLES), laboratory.new_model()
    recipe = replace(laboratory.TINY.recipe, batch=TOKENS, chunk=TOKENS, steps=None, cooldown=0, epochs=1)
    steps = epoch_steps(data.lengths, batch=TOKENS, chunk=TOKENS, seed=0, epoch=0)
    mean_rows = round(EXAMPLES / len(steps))
    examples = Dataset.from_dict(
        {
            "input_ids": [row.tolist() for row in data.source_ids],
            "attention_mask": [[1] * len(row) for row in data.source_ids],
            "labels": [row.tolist() for row in data.target_ids],
        }
    )
    work = {
        "headcount": lambda: laboratory.train(model, data, recipe),
        "Seq2SeqTrainer, grouped by length": lambda: _trainer(
            model, examples, data.tokenizer, mean_rows, "group_by_length"
        ),
        "Seq2SeqTrainer, as it comes": lambda: _trainer(model, examples, data.tokenizer, mean_rows, "random"),
    }
    times = interleave(work, repeats=7, warmup=1)
    seconds = {name: times.median(name) for name in times.seconds}
    note = f"tiny, {EXAMPLES} sentences of the grammar, {mean_rows} in a batch on average"
    for name, least in (("grouped by length", 1.15), ("as it comes", 1.3)):
        other = f"Seq2SeqTrainer, {name}"
        yield Row(
            f"training tokens/s against {other}", times.ratio(other, "headcount"), seconds, at_least=least, note=note
        )

    whole = laboratory.task("train", 40_000).lengths
    share = padding_share(whole, epoch_steps(whole, batch=TOKENS, chunk=TOKENS, seed=0, epoch=0))
    yield Row("padding share of batches, whole corpus", Interval(share, share, share), {}, at_most=0.05)


def _trainer(model: Any, examples: Dataset, tokenizer: Any, mean_rows: int, sampling: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=mean_rows,
            num_train_epochs=1,
            train_sampling_strategy=sampling,
            label_smoothing_factor=0.1,
            learning_rate=1e-4,
            max_grad_norm=1.0,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        collate = DataCollatorForSeq2Seq(tokenizer, model=model)
        trainer = Seq2SeqTrainer(model, arguments, train_dataset=examples, data_collator=collate)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
