"""headcount evaluate: how good a model is at its task."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import click

from headcount.cli import data, options

_OF_TRANSLATION = ("beams", "length_penalty", "lowercase", "tokens", "languages", "columns", "longest")
_OF_OTHERS = ("metric", "batch_size", "max_length", "text", "label", "pair")


@click.command("evaluate")
@options.loading
@data.tasked(split="test", inferred=True, beams=4)
@click.option("--length-penalty", default=0.6, show_default=True, type=float, help="Of beam search (translation).")
@click.option(
    "--tokens",
    default=4096,
    show_default=True,
    type=click.IntRange(1),
    help="Source tokens times beams of a batch (translation).",
)
@click.option("--against", metavar="MODEL", help="The whole model that embeddings are compared with (embedding).")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    work: data.TaskText,
    against: str | None,
    output: options.Output,
    as_json: bool,
    **decoding: Any,
) -> None:
    """Measure how good MODEL is at its task on a data set, with an interval.

    BLEU, chrF, loss and token accuracy of translations; accuracy, F1 or Matthews correlation of a classifier;
    perplexity, loss or accuracy of language models; how far the embeddings of a model are from --against.
    """
    from headcount import journal

    work = replace(work, task=work.task or _task(model, how), against=against)
    _check(work, against)
    translates = work.task == "translation"
    record = _translation(model, how, work, decoding) if translates else _other(model, how, work)
    if output.out and record.parts.translations is not None:
        lines = "".join(f"{line}\n" for line in record.parts.translations)
        journal.write_text(output.out / "translations.txt", lines)
    quoted = shlex.quote(model)
    then = f"echo 'A sentence.' | headcount translate {quoted}"
    output.present(record, as_json, then if translates else f"headcount ablate {quoted} {work.as_options()}")


def _task(model: str, how: options.Loading) -> str:
    objective = how.objective(model)
    if objective.task is None:
        raise click.UsageError(
            f"The class of {model}, {objective.architecture or 'not named in its config'}, does not say what the model "
            f"does: give --task, one of {', '.join(data.TASKS.names())}."
        )
    return str(objective.task)


def _check(work: data.TaskText, against: str | None) -> None:
    """Options that would do nothing, and the one that embeddings need."""
    translates = work.task == "translation"
    options.refuse(_OF_OTHERS if translates else _OF_TRANSLATION, f"does nothing with --task {work.task}")
    if (against is None) == (work.task == "embedding"):
        raise click.UsageError(
            "An embedding model has no objective of its own: its quality is how far its embeddings are from those of "
            "the whole model. Give that with --against."
            if against is None
            else f"--against does nothing with --task {work.task}."
        )


def _translation(model: str, how: options.Loading, work: data.TaskText, decoding: dict[str, Any]) -> Any:
    from headcount.cli import show
    from headcount.studies.evaluation import evaluate_translation

    with show.working(f"Loading {model}"):
        pairs = work.text.read()[work.split]
        tokenizer, live = how.tokenizer(model), how.load(model, task="translation")
    decoding = {**decoding, **work.quality}
    with show.Bars() as bars:
        return evaluate_translation(
            live, tokenizer, pairs, name=model, data=f"{work.text.data} {work.split}", limit=work.limit,
            progress=lambda done, of: bars.show("translating", done, of), **decoding,
        )  # fmt: skip


def _other(model: str, how: options.Loading, work: data.TaskText) -> Any:
    from headcount.cli import show
    from headcount.studies.evaluation import evaluate

    with show.working(f"Measuring {model}"):
        task = work.build(model, how)  # wrong data is said before a large model is loaded
        return evaluate(how.load(model, task=work.task), task, name=model, data=f"{work.text.data} {work.split}")
