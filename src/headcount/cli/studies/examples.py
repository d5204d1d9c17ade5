"""headcount study examples: the attention of every head on a few sentences, for the page."""

from __future__ import annotations

from typing import Any

import click

from headcount.cli import options


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
    from headcount.studies.examples import examples

    sentences, targets = _sentences(data, split, tuple(languages.split(",")) if languages else None)
    with show.working(f"Loading {model}"):
        tokenizer, live = how.tokenizer(model), how.load(model)
    with show.Bars() as bars:
        limits |= {"name": model, "data": f"{data} {split}"}
        record = examples(live, tokenizer, sentences, targets=targets, progress=bars.show, **limits)

    def draw(console: Any) -> None:
        found = record.parts["examples"]
        show.title(console, model, f"attention of {len(found[0]['attention'])} heads on {len(found)} sentences")
        for example in found:
            show.line(console, " ".join(example["tokens"]["source"]))

    output.present(record, as_json, draw)


_FEW = 200  # sentences to find short ones among


def _sentences(data: str, split: str, languages: tuple[str, ...] | None) -> tuple[Any, Any]:
    """Trees or texts, and translations where there are any."""
    from headcount.corpora.conllu import read_conllu
    from headcount.corpora.grammar.corpus import Grammar
    from headcount.corpora.parallel import GRAMMAR, read_parallel
    from headcount.corpora.plain import read_plain

    if data == GRAMMAR or data.startswith(f"{GRAMMAR}:"):
        rows = Grammar.named(data).split(split)[:_FEW]
        return [row.tree for row in rows], [row.target for row in rows]
    if data.endswith(".conllu"):
        return read_conllu(data, on_error="skip").trees[:_FEW], None
    if data.endswith(".txt"):
        return read_plain(data, limit=_FEW), None
    pairs = read_parallel(data, languages=languages)[split]
    some = pairs.select(range(min(_FEW, len(pairs))))
    return list(some["source"]), list(some["target"])
