"""headcount evaluate: how well a translation model translates."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import data, options


@click.command("evaluate")
@options.loading
@data.parallel
@click.option("--split", default="test", show_default=True, help="Part of the data to translate.")
@click.option("--beams", default=4, show_default=True, type=click.IntRange(1), help="1 is greedy.")
@click.option("--length-penalty", default=0.6, show_default=True, type=float)
@click.option("--lowercase", is_flag=True, help="Compare without regard to case.")
@click.option("--limit", type=click.IntRange(1), help="Use so many sentences at most.")
@click.option(
    "--tokens", default=4096, show_default=True, type=click.IntRange(1), help="Source tokens times beams of a batch."
)
@options.out_folder("Folder to write record.json and translations.txt to.")
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    text: data.ParallelText,
    split: str,
    out: Path | None,
    as_json: bool,
    **decoding: Any,
) -> None:
    """Translate a data set with MODEL and measure BLEU, chrF, loss and token accuracy."""
    from headcount import journal
    from headcount.cli import show
    from headcount.studies.evaluation import evaluate

    with show.working(f"Loading {model}"):
        pairs = text.read()[split]
        tokenizer = how.tokenizer(model)
        live = how.load(model, task="translation")
    with show.Bars() as bars:
        record = evaluate(
            live, tokenizer, pairs, name=model, data=f"{text.data} {split}",
            progress=lambda done, of: bars.show("translating", done, of), **decoding,
        )  # fmt: skip
    if out:
        written = "".join(line + "\n" for line in record.parts["translations"])
        journal.write_text(out / "translations.txt", written)
        record.save(out / "record.json")
    if as_json:
        click.echo(record.to_json())
    else:
        _show(record, model, out)


def _show(record: Any, model: str, out: Path | None) -> None:
    from headcount.cli import show

    console, parts = show.console(), record.parts
    show.title(console, model, f"{len(parts['translations'])} sentences of {record.signature.arguments['data']}")
    for name, value in parts["quality"].items():
        console.print(f"{name:15} {value:.4g}")
    show.line(console, f"\n{parts['metric']}", dim=True)
    if out:
        show.line(console, f"Translations: {out / 'translations.txt'}; every number: {out / 'record.json'}", dim=True)
    show.line(console, f"Next: echo 'A sentence.' | headcount translate {shlex.quote(model)}", dim=True)
