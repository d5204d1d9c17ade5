"""Quality against encoder heads left, where only those are pruned (Voita et al. 2019, Figure 7), and ours beside it."""

from __future__ import annotations

from collections.abc import Iterable

from headcount.report.section import Printed

_KIND, _METRIC = "encoder", "BLEU"
_PAPER = {
    "WMT": "48: 29.6, 19: plateau, 10: 29.5, 5: 29.0, 2: 28.25",
    "subtitles": "48: 32.4, 17: plateau, 9 and 4: 32.15, 1: 31.7",
}


def encoder_curve(
    points: Iterable[tuple[int, float]], *, kinds: Iterable[str], metric: str | None, way: str = ""
) -> list[Printed]:
    """The numbers of the paper, and ours if they are BLEU and only encoder heads were pruned.

    points: heads left, quality. kinds: of the pruned heads. way: of pruning, if there are several.
    """
    values = ", ".join(f"{left}: {value:.2f}" for left, value in points)
    comparable = values and set(kinds) == {_KIND} and metric == _METRIC
    ours = f"{way} {values}".strip() if comparable else None
    return [
        Printed(f"{corpus}, {_KIND} heads left: {_METRIC}", paper, None if index else ours)
        for index, (corpus, paper) in enumerate(_PAPER.items())
    ]
