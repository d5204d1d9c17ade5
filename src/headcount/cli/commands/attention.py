"""headcount attention: the attention of one head in one sentence."""

from __future__ import annotations

import shlex

import click

from headcount.cli import options


@click.command("attention")
@options.loading
@click.option("--head", required=True, help="Head to show, such as encoder.0.3.")
@click.option("--text", required=True, help="Sentence to show attention on.")
@click.option("--target", help="Decoder input, for decoder and cross heads. Default: what the model generates.")
@options.output
def COMMAND(
    model: str, loading: options.Loading, head: str, text: str, target: str | None, output: options.Output
) -> None:
    """Show the attention of one head of MODEL in a sentence: a map in the terminal, and a picture with --out."""
    from headcount.cli import show
    from headcount.studies.attention import attention_map

    with show.working(f"Loading {model}"):
        tokenizer = loading.tokenizer(model)
        live = loading.load(model)
        record = attention_map(live, tokenizer, text, head=head, target=target, name=model)
    repeated = f"--head {head} --text {shlex.quote(text)} --out DIR"
    output.present(record, "" if output.out else f"headcount attention {shlex.quote(model)} {repeated}")
