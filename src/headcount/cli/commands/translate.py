"""headcount translate: sentences from stdin, translations to stdout."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from headcount.cli import options
from headcount.cli.characters import one_line

_AT_ONCE = 1000  # sentences read before translating, so that batches have similar lengths


@click.command("translate")
@options.loading
@click.argument("file", type=click.File("rb"), default="-")
@options.integer("--beams", "Beams of beam search; 1 is greedy decoding.", 4)
@click.option(
    "--length-penalty", default=0.6, show_default=True, type=options.Real(),
    help="Exponent of the length by which the log-probability of a beam is divided.",
)  # fmt: skip
@options.integer("--tokens", "Most source tokens times beams in a batch.", 4096)
def COMMAND(model: str, loading: options.Loading, file: BinaryIO, **decoding: Any) -> None:
    """Translate FILE, or stdin, line by line with MODEL. Empty lines give empty lines."""
    from headcount.cli import show
    from headcount.studies.evaluation import translate

    with show.working(f"Loading {model}"):
        tokenizer = loading.tokenizer(model)
        live = loading.load(model, task="translation")
    terminal = file.isatty()
    for lines in _runs(file, 1 if terminal else _AT_ONCE):
        for translation in translate(live, tokenizer, lines, **decoding):
            click.echo(one_line(translation))


def _runs(file: BinaryIO, size: int) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in _lines(file):
        lines.append(line)
        if len(lines) == size:
            yield lines
            lines = []
    if lines:
        yield lines


def _lines(file: BinaryIO) -> Iterator[str]:
    """Lines that end in LF or CRLF, as `read_lines` reads those of data: other line breaks are part of a line."""
    from headcount.corpora.lines import check_line_end

    name = str(getattr(file, "name", "stdin"))
    for number, line in enumerate(file):
        if number == 0:
            check_line_end(line, name)
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"{name} is not UTF-8 text ({error.reason}).") from error
