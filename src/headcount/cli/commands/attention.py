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
    loading: options.Loading,
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
        tokenizer = loading.tokenizer(model)
        live = loading.load(model)
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
    """Rows look, columns are looked at; the darker, the more. Numbers of columns are read from top to bottom."""
    from rich.text import Text

    from headcount.cli import tables

    console.print(tables.attention_table(found["queries"], found["keys"], found["weights"]))
    if found["queries"] != found["keys"]:
        columns = " ".join(f"{number}:{key}" for number, key in enumerate(found["keys"]))
        console.print(Text(f"\ncolumns: {columns}", style="dim"))
