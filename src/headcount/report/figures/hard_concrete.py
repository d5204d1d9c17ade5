"""The distribution of a gate for several parameters, with its heaps at 0 and 1 (Voita et al. 2019, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headcount.record import Record
from headcount.report.canvas import panels
from headcount.report.figure import Drawing, Figure
from headcount.report.palette import LINES


def _draw(records: Sequence[Record]) -> Drawing:
    canvas, axes = panels(len(records), width=4.4, height=3.0, columns=2)
    rows: list[dict[str, Any]] = []
    inside = np.linspace(0.005, 0.995, 199)
    for record, plot in zip(records, axes, strict=True):
        for number, gate in enumerate(record.parts["hard_concrete"]):
            said = f"log a = {gate['log_a']:g}: p(0) = {gate['zero']:.2f}, p(1) = {gate['one']:.2f}"
            plot.plot(inside, _density(gate, inside), color=LINES[number], label=said)
            for place, name in ((0, "zero"), (1, "one")):
                plot.plot([place, place], [0, gate[name]], color=LINES[number], linewidth=3, alpha=0.6)
            rows.append({"model": record.signature.model, **gate})
        plot.set_xlabel("gate")
        plot.set_ylabel("density; heaps: probability")
        plot.set_title(f"beta = {record.parts['hard_concrete'][0]['beta']:g}")
        plot.legend()
    caption = "The Hard Concrete distribution: bars are the probabilities of exactly 0 and 1, lines the density."
    return Drawing(canvas, caption, rows)


def _density(gate: Mapping[str, float], values: np.ndarray) -> np.ndarray:
    """Of the stretched Concrete distribution: the derivative of sigmoid(beta logit(s) - log_a) by the stretched s."""
    width = gate["high"] - gate["low"]
    s = (values - gate["low"]) / width
    below = 1 / (1 + np.exp(-(gate["beta"] * np.log(s / (1 - s)) - gate["log_a"])))  # P(g <= value)
    density: np.ndarray = below * (1 - below) * gate["beta"] / (s * (1 - s)) / width
    return density


FIGURE = Figure("The distribution of a gate", "Voita et al. 2019, Figure 6", ("hard_concrete",), _draw)
