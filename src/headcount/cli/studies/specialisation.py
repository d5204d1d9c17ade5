"""headcount study specialisation: do heads with a role matter more, and do they survive pruning?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click

from headcount.cli import data, options


@click.command("specialisation")
@options.model_argument("models", nargs=-1, required=True)
@options.loading_only
@data.tasked(split="dev", measured=True)
@click.option("--trees", help="Treebank (.conllu) to measure roles on, in two halves. Default: the trees of --data.")
@click.option("--kind", default="encoder", show_default=True, help="Kind of heads to study.")
@options.integer("--keep", "Heads of the kind that gates keep. Default: a third of them.")
@options.gate_steps
@options.tune_steps
@options.choose_limit(300)
@options.output
def COMMAND(
    models: tuple[str, ...],
    loading: options.Loading,
    work: data.Workload,
    trees: str | None,
    kind: str,
    keep: int | None,
    steps: int,
    tune: int,
    choose_limit: int,
    output: options.Output,
) -> None:
    """Test over several MODELS whether specialised heads do the work and survive pruning (Voita et al. 2019).

    MODELS are trained alike, with different seeds for example. If interrupted, run the same command again to resume.
    """
    import tempfile
    from contextlib import nullcontext
    from pathlib import Path

    from headcount.cli import show
    from headcount.pruning.tuning import Tuning
    from headcount.studies.specialisation import SpecialisationPlan, specialisation

    plan = SpecialisationPlan(keep, steps, Tuning(steps=tune), kind)
    choose, measure = work.divide()
    subjects = {name: _Builder(name, loading, choose, measure, trees, choose_limit) for name in models}
    folder = nullcontext(output.unfinished) if output.unfinished else tempfile.TemporaryDirectory()
    with folder as path, show.Bars() as bars:
        record = specialisation(
            subjects,
            plan,
            folder=Path(path),
            data=f"{work.source.data} {measure.source.split_label}",
            progress=bars.show,
        )
    output.present(record)


@dataclass(frozen=True)
class _Builder:
    """Loads one model and its data on use."""

    name: str
    loading: options.Loading
    choose: data.Workload
    measure: data.Workload
    trees: str | None
    choose_limit: int

    def __call__(self) -> Any:
        from headcount.studies.kept import Looking
        from headcount.studies.plan import Data
        from headcount.studies.specialisation import ModelWithData

        name, loading, choose, measure = self.name, self.loading, self.choose, self.measure
        tokenizer = loading.tokenizer(name)
        frequencies = choose.frequencies(tokenizer)
        train = choose.on("train").with_limit(None)
        works = (train, choose.with_limit(self.choose_limit), measure)
        choosing, measured = choose.sentences(self.trees), measure.sentences(self.trees)
        if choosing.fingerprint == measured.fingerprint:  # a treebank is one file, and data may have one held-out split
            choosing, measured = choosing.half(1), measured.half(2)
        return ModelWithData(
            name,
            loading.load(name, task=choose.task),
            Data(*(work.build(name, loading) for work in works)),
            replace(measure, metric="loss").build(name, loading),
            Looking(choosing, tokenizer, frequencies),
            Looking(measured, tokenizer, frequencies),
        )
