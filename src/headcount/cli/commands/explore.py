"""headcount explore: what the heads of any model do and which of them matter, as one page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options

if TYPE_CHECKING:
    from headcount.record import Record

_DATA = (
    "Text of your own: a treebank (.conllu), plain text (.txt); labelled text for a classifier, parallel text for an "
    "encoder-decoder (.tsv, .jsonl, a folder, hf:NAME). Default: embedded English sentences"
)
_TEXTS = 12  # that fit on a page


@click.command("explore")
@options.loading
@data.source(_DATA, split="test", required=False, fields=("languages", "text_column", "label", "pair"))
@options.limit(300)
@options.batch_size
@click.option("--text", "texts", multiple=True, help="Sentence to show attention on; may be repeated.")
@click.option(
    "--frequencies",
    default="",
    help="Token frequencies: .json, .tsv, or text to count them in. Default: counted in the text.",
)
@click.option(
    "--one-out", default=0, type=click.IntRange(0),
    help="Sentences for masking one head at a time; 0 chooses by the size of the model.",
)  # fmt: skip
@click.option("--out", type=options.FOLDER, help="Folder for the page and the records. Default: explore-MODEL.")
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser at the end.")
def COMMAND(
    model: str,
    loading: options.Loading,
    source: data.Source,
    limit: int,
    texts: tuple[str, ...],
    out: Path | None,
    opened: bool,
    **settings: Any,
) -> None:
    """Show what the heads of MODEL do and which of them matter, as one page. No data is needed.

    If interrupted, run the same command again to resume. The page is written as soon as the first part is done.
    """
    from headcount import journal
    from headcount.checkpoints.loading import quiet
    from headcount.cli import show
    from headcount.report.html import page
    from headcount.report.page_file import is_page
    from headcount.studies.explore import ExploreSettings, explore

    if len(texts) > _TEXTS:
        raise click.UsageError(f"--text can be given at most {_TEXTS} times; got {len(texts)}.")
    name = model.rstrip("/").rpartition("/")[2] or "model"
    folder = out or Path(f"explore-{name}")
    report = folder / "report.html"
    quiet()

    def refresh(record: Record) -> None:
        journal.write_text(report, page([record]), replaces=is_page)

    with _naming(report), options.reserved(folder, shared=True), show.Bars() as bars:
        record = explore(
            ExploreSettings(model, replace(source, limit=limit), **settings), folder, loading=loading, texts=texts,
            progress=bars.show, refresh=refresh,
        )  # fmt: skip
    _show(record, report, model)
    if opened:
        click.launch(report.resolve().as_uri())


@contextmanager
def _naming(report: Path) -> Iterator[None]:
    """Name the page that an interrupted command has already written."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        if report.is_file():
            interruption.add_note(f"{report} shows the parts measured so far; run the same command again to resume.")
        raise


def _show(record: Record, report: Path, model: str) -> None:
    """Every question with its answer; tables are on the page."""
    from headcount.cli import show
    from headcount.report import text

    console = show.console()
    text.show(console, [record], tables=False, missing=False)
    show.missing(console, record)
    show.line(console, f"Open {report} in a browser. Every number: {report.parent / 'record.json'}.")
    show.line(
        console, f"Next: headcount explore {shlex.quote(model)} --text 'A sentence of your own.' --open", dim=True
    )
