"""A training step with gates against the same step without: Hard Concrete under a budget, and exactly k."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from benchmarks import laboratory
from benchmarks.row import Row
from headcount.probes.gated import HardConcreteGates
from headcount.probes.gates import attached
from headcount.probes.subset import SubsetGates
from headcount.timing import interleave
from headcount.training.annealing import Annealing
from headcount.training.loop import Loop
from headcount.training.partner import Partner
from headcount.training.penalty import Penalty

STEPS, EXAMPLES = 12, 1200
KEEP = 14  # of 56 heads of all kinds: the gates are everywhere


def rows() -> Iterator[Row]:
    data, model = laboratory.task("train", EXAMPLES), laboratory.new_model()

    def plain() -> None:
        _train(model, data, None)

    def hard_concrete() -> None:
        gates = HardConcreteGates(model)
        with attached(model, gates, redraw=False):
            _train(model, data, Penalty(gates, steps=STEPS, keep=KEEP))

    def subset() -> None:
        gates = SubsetGates(model, keep=KEEP)
        with attached(model, gates, redraw=False):
            _train(model, data, Annealing(gates, steps=STEPS))

    times = interleave({"without": plain, "l0": hard_concrete, "subset": subset}, repeats=15, warmup=1)
    seconds = {name: times.median(name) for name in times.seconds}
    heads = len(HardConcreteGates(model).heads)
    note = f"tiny, {STEPS} steps of {laboratory.TINY.recipe.batch} tokens, gates on all {heads} heads, {KEEP} to keep"
    for name, most in (("l0", 1.05), ("subset", 1.15)):
        yield Row(f"training step with gates of {name}", times.ratio(name, "without"), seconds, at_most=most, note=note)


def _train(model: Any, data: Any, partner: Partner | None) -> None:
    recipe = replace(laboratory.TINY.recipe, steps=STEPS, cooldown=0)
    with tempfile.TemporaryDirectory() as folder:
        Loop(
            model, data, recipe, Path(folder), laboratory.TINY.size.width, judge=lambda _: {"loss": 0.0},
            keep=lambda _: None, accelerator=Accelerator(cpu=True), partner=partner,
        ).run()  # fmt: skip
