"""The distribution of a gate for several parameters, with its masses at 0 and 1 (Voita et al. 2019, Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.record.codec import encode
from headcount.record.results.prune import HardConcrete
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure
from headcount.report.palette import LINES

_PAPER = 0.5  # beta of the paper's figure


def _draw(records: Sequence[Record]) -> Drawing:
    families = _families(records)
    canvas, axes = panels(len(families), width=4.2, height=3.0, columns=2)
    rows: list[dict[str, Any]] = []
    models = ", ".join(dict.fromkeys(record.signature.model for record in records))
    inside = np.linspace(0.005, 0.995, 199)
    for (beta, gates), plot in zip(families.items(), axes, strict=True):
        for number, gate in enumerate(gates):
            label = f"log a = {gate.log_a:g}: p(0) = {gate.zero:.2f}, p(1) = {gate.one:.2f}"
            plot.plot(inside, _density(gate, inside), color=LINES[number], label=label)
            for position, share in ((0, gate.zero), (1, gate.one)):
                at = position + (number - (len(gates) - 1) / 2) * 0.022  # side by side
                plot.plot([at, at], [0, share], color=LINES[number], linewidth=3, alpha=0.6, solid_capstyle="butt")
            rows.append({"model": models, **encode(gate)})
        plot.set_ylim(bottom=0)
        plot.set(xlabel="gate", ylabel="density; bars: probability")
        plot.set_title(f"beta = {beta:g}{', as in the paper' if beta == _PAPER else ''}")
        plot.legend()
    caption = "The Hard Concrete distribution: bars are the probabilities of exactly 0 and 1, lines the density."
    return Drawing(canvas, caption, rows)


def _families(records: Sequence[Record]) -> dict[float, list[HardConcrete]]:
    """beta -> distributions: they do not depend on the model, so equal ones of several records are shown once."""
    by_beta: dict[float, list[HardConcrete]] = {}
    for gate in (gate for record in records for gate in record.parts.hard_concrete):
        family = by_beta.setdefault(gate.beta, [])
        if gate not in family:
            family.append(gate)
    return by_beta


def _density(gate: HardConcrete, values: np.ndarray) -> np.ndarray:
    """Of the stretched Concrete distribution: the derivative of sigmoid(beta logit(s) - log_a) by the stretched s."""
    width = gate.high - gate.low
    s = (values - gate.low) / width
    below = 1 / (1 + np.exp(-(gate.beta * np.log(s / (1 - s)) - gate.log_a)))  # P(g <= value)
    density: np.ndarray = below * (1 - below) * gate.beta / (s * (1 - s)) / width
    return density


_WITHOUT = {"hard_concrete": "no Hard Concrete gates were learned (l0)"}
FIGURE = Figure("The distribution of a gate", "Voita et al. 2019, Figure 6", ("hard_concrete",), _draw, _WITHOUT)
