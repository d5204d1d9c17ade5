"""headcount demo: the experiments of both papers on a small translation model, as one page."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headcount.cli import options


@click.command("demo")
@options.out_folder("Folder for models and report.", default="demo", show_default=True)
@click.option("--quick", is_flag=True, help="Run a smaller version of everything, in a few minutes.")
@options.seed("the model")
def COMMAND(out: Path, quick: bool, seed: int) -> None:
    """Train a small translation model on the embedded corpus, run the experiments of both papers on it, prune it.

    If interrupted, run the same command again to resume. The page is written as soon as the first part is done, and
    again after each part.
    """
    from headcount import journal
    from headcount.checkpoints.loading import quiet
    from headcount.claims.pool import LEDGER
    from headcount.cli import show
    from headcount.record import Record
    from headcount.report.html import page
    from headcount.report.page_file import is_page
    from headcount.studies.demo import REPORT, demo, train_model
    from headcount.training.run import Watch

    quiet()
    console, report = show.console(), out / REPORT

    def refresh(record: Record) -> None:
        journal.write_text(report, page([record], title="headcount demo"), replaces=is_page)

    show.line(console, "A translation model learns the embedded corpus.")
    with show.Training() as display:
        model = train_model(out, seed=seed, quick=quick, watch=Watch(step=display.step, message=display.say))
    show.line(console, "The experiments of both papers run on it.")
    with show.Bars(every_part=True) as bars:
        record = demo(model, out, quick=quick, progress=bars.show, refresh=refresh)
    refresh(record)
    show.ledger(console, record.parts.records[LEDGER])
    show.missing(console, record)
    show.line(console, f"\nOpen {report} in a browser. Every number: {out / 'study' / 'record.json'}.")
    full_model, smaller = shlex.quote(str(model)), shlex.quote(str(out / "smaller"))
    show.line(console, "Next, on these or on a model and data of your own:", dim=True)
    for command in (
        f"bench {full_model} {smaller}",
        f"attention {full_model} --head encoder.1.3 --text 'the old king sees a blue stone'",
        "study all MODEL --data DATA --task classification --out study",
    ):
        show.line(console, f"  headcount {command}", dim=True)
