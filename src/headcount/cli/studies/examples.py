"""headcount study examples: the attention of every head on a few sentences, for the page."""

from __future__ import annotations

from typing import Any

import click

from headcount.cli import options

_FEW = 200  # sentences to find short ones among


@click.command("examples")
@options.loading
@click.option(
    "--data", required=True, help="grammar[:LANGUAGE[:DOMAIN]], a treebank (.conllu), parallel or plain text."
)
@click.option("--split", default="test", show_default=True, help="Part of the data, where it has several.")
@click.option("--languages", help="Endings of the files in a folder: SOURCE,TARGET, such as en,de.")
@click.option("--count", default=4, show_default=True, type=click.IntRange(1), help="Sentences at most.")
@click.option("--longest", default=20, show_default=True, type=click.IntRange(2), help="Tokens of a sentence at most.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    data: str,
    split: str,
    languages: str | None,
    output: options.Output,
    as_json: bool,
    **limits: Any,
) -> None:
    """Keep the attention of every head of MODEL on a few sentences; the report draws it on the heads' cards."""
    from headcount.cli import show
    from headcount.corpora.sentences import read_sentences
    from headcount.studies.examples import examples

    pair = [part.strip() for part in languages.split(",")] if languages else None
    sentences = read_sentences(data, split=split, languages=pair, limit=_FEW)
    with show.working(f"Loading {model}"):
        tokenizer, live = how.tokenizer(model), how.load(model)
    with show.Bars() as bars:
        limits |= {"name": model, "data": f"{data} {split}"}
        record = examples(live, tokenizer, sentences, targets=sentences.targets, progress=bars.show, **limits)
    output.present(record, as_json, "headcount report DIR --out report.html")
