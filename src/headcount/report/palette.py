"""Colours and style of all figures. Okabe and Ito's colours, which colour-blind readers can distinguish."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#8B5FBF"
RED, SKY, YELLOW, PINK, GREY, INK = "#D55E00", "#56B4E9", "#F0E442", "#CC79A7", "#9A9A9A", "#222222"

# The colours of Voita et al. 2019 for what heads do.
ROLES = {"positional": PURPLE, "syntactic": GREEN, "rare": ORANGE, "none": GREY}
# Beyond the paper.
ROLES |= {"current-token": PINK, "delimiter": SKY, "same-token": BLUE, "induction": RED, "alignment": YELLOW}
_OTHER_ROLES = (SKY, RED, YELLOW, BLUE)
KINDS = {"encoder": BLUE, "cross": ORANGE, "decoder": GREEN, "text": BLUE, "vision": GREEN}
LINES = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, INK, GREY)
MARKERS = "osD^vPX*"  # lines also differ by marker, for print without colour

STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.0,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text stays text in the file
    "svg.fonttype": "none",
    "svg.hashsalt": "headcount",  # the same figure is the same file
}


def line_style(number: int) -> dict[str, str]:
    """Colour and marker of a line."""
    return {"color": LINES[number % len(LINES)], "marker": MARKERS[number % len(MARKERS)]}


def role_colour(role: str) -> str:
    """The paper's colour of a role; other roles get a colour that depends on their name."""
    return ROLES.get(role) or _OTHER_ROLES[sum(role.encode()) % len(_OTHER_ROLES)]


def kind_colour(kind: str) -> str:
    return KINDS.get(kind, BLUE)
