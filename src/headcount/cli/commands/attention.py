"""headcount attention: where one head looks in one sentence."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headcount.cli import options


@click.command("attention")
@options.loading
@click.option("--head", required=True, help="Such as encoder.0.3.")
@click.option("--text", required=True, help="The sentence.")
@click.option("--target", help="What the decoder reads, for its heads; what the model writes if not given.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    head: str,
    text: str,
    target: str | None,
    output: options.Output,
    as_json: bool,
) -> None:
    """Show where a head of MODEL looks in a sentence: a map in the terminal, and a picture with --out."""
    from headcount.cli import show
    from headcount.studies.attention import attention_map

    with show.working(f"Loading {model}"):
        tokenizer = how.tokenizer(model)
        live = how.load(model)
        record = attention_map(live, tokenizer, text, head=head, target=target, name=model)
    output.present(record, as_json, lambda console: _show(console, model, record, output))


def _show(console: Any, name: str, record: Any, output: options.Output) -> None:
    from headcount.cli import show

    head, text = record.parts["head"], record.parts["text"]
    show.title(console, name, f"attention of {head}")
    _map(console, record.parts["attention"])
    if not output.out:
        again = f"--head {head} --text {shlex.quote(text)} --out DIR"
        show.line(console, f"\nNext: headcount attention {shlex.quote(name)} {again}", dim=True)


def _map(console: Any, found: dict[str, Any]) -> None:
    """Rows look, columns are looked at; the darker, the more. Every second column is numbered."""
    from rich.text import Text

    from headcount.cli import tables

    queries, keys, weights = found["queries"], found["keys"], found["weights"]
    width = min(14, max(map(len, queries)))
    numbers = "".join(f"{number:<4}" for number in range(0, len(keys), 2))
    console.print(Text(" " * (width + 5) + numbers, style="dim"), soft_wrap=True)
    for number, (query, row) in enumerate(zip(queries, weights, strict=True)):
        line = Text(f"{query[:width]:>{width}} {number:>2}  ")
        for weight in row:
            line.append(*tables.shade(weight))
        top = max(range(len(row)), key=row.__getitem__)
        line.append(f" {row[top]:.2f} {keys[top]}", style="dim")
        console.print(line, soft_wrap=True)
    if queries != keys:
        console.print(Text("\ncolumns: " + " ".join(f"{number}:{key}" for number, key in enumerate(keys)), style="dim"))
