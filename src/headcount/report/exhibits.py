"""Exhibits: every table and figure of both papers, which part of a study gives it, and which figure draws it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of a paper."""

    paper: str  # voita2019, michel2019
    name: str  # as the paper numbers it
    shows: str
    part: str  # of `headcount study`
    figure: str | None  # of `headcount figure`; None: a table of the part


EXHIBITS = (
    Exhibit("voita2019", "Figure 1", "importance of the heads of each layer, with their roles", "roles", "head-roles"),
    Exhibit("voita2019", "Figure 2", "importance and function of heads by target language", "roles", "head-roles"),
    Exhibit("voita2019", "Figure 3", "position of dependents relative to their heads", "roles", "relative-positions"),
    Exhibit("voita2019", "Table 1", "syntactic heads against the best fixed offset", "roles", "syntactic-heads"),
    Exhibit("voita2019", "Figure 4", "syntactic heads by target language and domain", "roles", "syntactic-heads"),
    Exhibit("voita2019", "Figure 5", "attention of a head that looks at rare tokens", "attention", "attention"),
    Exhibit("voita2019", "Figure 6", "the Hard Concrete distribution", "tradeoff", "hard-concrete"),
    Exhibit("voita2019", "Figure 7", "quality against encoder heads kept", "tradeoff", "tradeoff"),
    Exhibit("voita2019", "Figure 8", "roles of the encoder heads that are kept", "tradeoff", "kept-roles"),
    Exhibit("voita2019", "Table 2", "all kinds pruned, from the trained model and from scratch", "all-kinds", None),
    Exhibit("voita2019", "Figure 9", "heads kept of each kind", "all-kinds", "kept-by-kind"),
    Exhibit("voita2019", "Figure 10", "heads kept by layer of the decoder", "all-kinds", "kept-by-layer"),
    Exhibit("michel2019", "Table 1", "each head masked alone", "ablation", "ablation-map"),
    Exhibit("michel2019", "Figure 1", "scores of all single ablations", "ablation", "ablation-histogram"),
    Exhibit("michel2019", "Tables 2 and 3", "the best head of each layer left alone", "ablation", None),
    Exhibit("michel2019", "Figure 2", "the same heads on a second data set", "ablation", "transfer"),
    Exhibit("michel2019", "Figure 3", "quality as heads go, by both orders", "curves", "pruning-curves"),
    Exhibit("michel2019", "Figure 4", "quality as heads of one kind go", "curves", "pruning-by-kind"),
    Exhibit("michel2019", "Table 4", "speed with half of the heads", "speed", "speed"),
    Exhibit("michel2019", "Figure 5", "pruning during training, both panels", "dynamics", "dynamics"),
)


def exhibits(paper: str | None = None) -> tuple[Exhibit, ...]:
    return tuple(exhibit for exhibit in EXHIBITS if paper is None or exhibit.paper == paper)
