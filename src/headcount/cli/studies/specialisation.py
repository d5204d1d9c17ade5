"""headcount study specialisation: do heads with a role matter more, and do they survive pruning?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from headcount.cli import data, options


@click.command("specialisation")
@click.argument("models", nargs=-1, required=True)
@data.tasked(split="dev", measured="test if not given")
@click.option("--trees", help="Treebank (.conllu) to measure roles on; the trees of --data if not given.")
@click.option("--kind", default="encoder", show_default=True, help="Kind of heads.")
@click.option("--keep", type=click.IntRange(1), help="Heads of the kind that gates keep; a third of them if not given.")
@click.option("--steps", default=150, show_default=True, type=click.IntRange(1), help="Training steps with gates.")
@click.option("--tune", default=1050, show_default=True, type=click.IntRange(0), help="Steps of fine-tuning after.")
@click.option("--choose-limit", default=300, show_default=True, type=click.IntRange(1), help="Texts to score heads on.")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    models: tuple[str, ...],
    work: data.TaskText,
    trees: str | None,
    kind: str,
    keep: int | None,
    steps: int,
    tune: int,
    choose_limit: int,
    output: options.Output,
    as_json: bool,
) -> None:
    """Test over several MODELS whether specialised heads do the work and survive pruning (Voita et al. 2019).

    MODELS are trained alike, with different seeds for example. If interrupted, run the same command again to resume.
    """
    import tempfile
    from pathlib import Path

    from headcount.cli import show
    from headcount.methods.course import Course
    from headcount.studies.specialisation import Plan, specialisation

    plan = Plan(keep, Course(steps=steps, tune=tune), kind)
    measured = work.measured or "test"
    subjects = {name: _Builder(name, work, measured, trees, choose_limit) for name in models}
    with tempfile.TemporaryDirectory() as temporary, show.Bars() as bars:
        folder = output.unfinished or Path(temporary)
        record = specialisation(subjects, plan, folder=folder, data=f"{work.text.data} {measured}", progress=bars.show)
    output.present(record, as_json)


class _Builder:
    """Loads one model and its data when the study gets to it."""

    def __init__(self, name: str, work: data.TaskText, measured: str, trees: str | None, choose_limit: int) -> None:
        self._name, self._work, self._measured = name, work, measured
        self._trees, self._choose_limit = trees, choose_limit

    def __call__(self) -> Any:
        from headcount.corpora.frequencies import counted
        from headcount.studies.kept import Looking
        from headcount.studies.plan import Data
        from headcount.studies.specialisation import Subject

        how, work, name = options.Loading(None, None, trust_remote_code=False), self._work, self._name
        measure = work.elsewhere(None, self._measured)
        costs = replace(measure, quality={**work.quality, "metric": "loss"})
        tokenizer, frequencies = how.tokenizer(name), None
        if work.task == "translation":
            texts = work.text.read()["train"]["source"]
            frequencies = counted(texts, tokenizer, source=f"{work.text.data} train")
        train, choose = replace(work, split="train", limit=None), replace(work, limit=self._choose_limit)
        return Subject(
            name,
            how.load(name, task=work.task),
            Data(*(part.build(name, how) for part in (train, choose, measure))),
            costs.build(name, how),
            Looking(work.sentences(self._trees), tokenizer, frequencies),
            Looking(measure.sentences(self._trees), tokenizer, frequencies),
        )
