"""headcount evaluate: the quality of a model at its task."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options
from headcount.cli.characters import one_line

if TYPE_CHECKING:
    from headcount.record import Record
    from headcount.record.results.evaluate import Evaluation

_OF_WRITING = ("beams", "length_penalty", "lowercase", "tokens", "languages", "columns", "longest")
_OF_DATA = ("max_length", "text_column", "label", "pair", "split", "length_penalty", "beams")
_OF_OTHERS = ("metric", "batch_size", "max_length", "text_column", "label", "pair")


@click.command("evaluate")
@options.loading
@data.tasked(split="test", inferred=True, beams=4, harness=True)
@click.option(
    "--length-penalty",
    default=0.6,
    show_default=True,
    type=options.Real(),
    help="Length penalty of beam search (translation).",
)
@options.integer("--tokens", "Most source tokens times beams in a batch (translation).", 4096)
@click.option("--against", metavar="MODEL", help="Model whose embeddings are the reference (embedding).")
@options.output
def COMMAND(
    model: str,
    loading: options.Loading,
    work: data.Workload,
    against: str | None,
    output: options.Output,
    **decoding: Any,
) -> None:
    """Measure the quality of MODEL at its task on a data set, with an interval.

    BLEU, chrF, loss and token accuracy of translations; accuracy, F1 or Matthews correlation of a classifier;
    perplexity or loss of language models, also accuracy of masked ones; the distance of embeddings from those of
    --against. With --task lm-eval:TASK[,TASK] the lm-evaluation-harness measures, on its own data; --data is then a
    folder with further task files.
    """
    from headcount.checkpoints.chosen_on import read_chosen_on
    from headcount.cli import show
    from headcount.studies.evaluation import evaluate

    work = replace(work, task=work.task or data.inferred_task(model, loading), reference=against)
    _check(work)
    if output.out and work.kind.writes:
        _refuse_translations_of_user(output.out / "translations.txt")
    if work.kind.writes:  # up to the limit of the model
        work = replace(work, max_length=None, decoding={**work.decoding, **decoding})
    with show.working(f"Measuring {model}"):
        task = work.build(model, loading)  # wrong data is reported before a large model is loaded
        _check_tokenizer(against, model, task, loading)
        live = loading.load(model, task=work.loaded_for)
        chosen_on = read_chosen_on(model, loading.revision)
    with show.Bars() as bars:
        data_name = work.task if work.by_harness else work.source.label
        record = evaluate(
            live, task, name=model, data=data_name, against=against, chosen_on=chosen_on, progress=bars.show
        )
    quoted = shlex.quote(model)
    next_command = (
        f"echo 'A sentence.' | headcount translate {quoted}"
        if work.kind.writes
        else f"headcount ablate {quoted} {work.as_options()}"
    )
    if work.by_harness:
        next_command = (
            f"headcount prune {quoted} --choose gradient --keep 50% --task language-modelling --data TEXTS "
            f"--measure-task {shlex.quote(work.task)} --out DIR"
        )
    if output.out:
        remove_replaced_translations(output.out / "translations.txt")
    output.present(record, next_command)
    if output.out:  # after the record, by which translations are known to be those of headcount
        write_translations(output.out / "translations.txt", record)


def _check_tokenizer(against: str | None, model: str, task: Any, loading: options.Loading) -> None:
    """Raise if the reference of embeddings has another tokenizer: both models read the tokens of that of MODEL."""
    from headcount.checkpoints.companions import find_file

    if against is None or find_file(against, "tokenizer_config.json", loading.revision) is None:
        return
    if not task.is_read_alike(loading.tokenizer(against)):
        raise click.UsageError(
            f"--against {against} has another tokenizer than {model}, which would give it tokens that mean something "
            "else: its embeddings are no reference. Give a model with the same tokenizer."
        )


def _refuse_translations_of_user(file: Path) -> None:
    """Raise if translations stand where no result of evaluate is: they are the user's."""
    from headcount.errors import FolderError

    if file.is_file() and not file.with_name("record.json").is_file():
        raise FolderError(f"{file} would be overwritten by the translations; move it, or give another folder.")


def remove_replaced_translations(file: Path) -> None:
    """Set the translations of the result that is about to be replaced aside."""
    from headcount import journal
    from headcount.record.model_folder import folder_record

    replaced = folder_record(str(file.parent), "evaluate")
    if replaced is None or replaced.parts.translations is None or not file.is_file():
        return
    if file.read_bytes() == _lines(replaced).encode():  # its record has them too
        file.unlink()
    else:
        journal.set_aside(file)


def write_translations(file: Path, record: Record[Evaluation]) -> None:
    """Write the translations of a result, one per line, if it has any."""
    from headcount import journal

    if record.parts.translations is not None:
        journal.write_text(file, _lines(record), replaces=journal.nothing)


def _lines(record: Record[Evaluation]) -> str:
    return "".join(f"{one_line(text)}\n" for text in record.parts.translations or ())


def _check(work: data.Workload) -> None:
    """Raise for options that would do nothing, and if embeddings lack --against."""
    refused: tuple[str, ...] = _OF_OTHERS if work.kind.writes else _OF_WRITING
    if work.by_harness:
        refused = (*_OF_WRITING, *_OF_DATA)
    options.refuse(refused, f"does nothing with --task {work.task}")
    if (work.reference is None) == work.kind.stationary:
        raise click.UsageError(
            "An embedding model has no objective of its own: its quality is how far its embeddings are from those of "
            "the whole model. Give that with --against."
            if work.reference is None
            else f"--against does nothing with --task {work.task}."
        )
