"""headcount study examples: the attention of every head on a few sentences, for the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from headcount.cli import data, options

_FEW = 200  # sentences to search for short ones


@click.command("examples")
@options.loading
@data.source(data.SENTENCES, split="test", fields=("languages",))
@options.integer("--count", "Most sentences.", 4)
@options.integer("--longest", "Most tokens of a sentence.", 20, least=2)
@options.output
def COMMAND(model: str, loading: options.Loading, source: data.Source, output: options.Output, **limits: Any) -> None:
    """Store the attention of every head of MODEL on a few sentences, for the cards of the report."""
    from headcount.cli import show
    from headcount.studies.examples import examples

    sentences = replace(source, limit=_FEW).sentences()
    with show.working(f"Loading {model}"):
        tokenizer, live = loading.tokenizer(model), loading.load(model)
    with show.Bars() as bars:
        limits |= {"name": model, "data": source.data_and_split}
        record = examples(live, tokenizer, sentences, targets=sentences.targets, progress=bars.show, **limits)
    output.present(record, "headcount report DIR --out report.html")
