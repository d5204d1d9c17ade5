"""The headline: its numbers by hand, and nothing where there is nothing to say."""

from __future__ import annotations

from dataclasses import replace

import records as made
from headcount.heads import PAPER_ROLES
from headcount.record import Record, Signature
from headcount.report.headline import headline
from headcount.report.joined import STUDY, Comparison, RoleImportance
from headcount.statistics import Correlation, Interval

COMPARISON = Comparison(
    "BLEU lost without it", "encoder", "of the paper", PAPER_ROLES, 8, 3, 2.0, 1.0,
    Interval(1.0, 0.5, 1.5), Interval(1.0, 0.5, 1.5),
    top=2, top_with_role=2, top_expected=0.75, correlation=Correlation(0.5, 0.1, 0.8, 0.02),
)  # fmt: skip


def records(roles: dict[str, str], kept: list[str]) -> list[Record]:
    sample = made.tradeoff(kinds=False).parts
    point = replace(sample.points[0], way="l0", seed=0, keep=len(kept), heads=(*kept, "decoder.0.0"))
    tradeoff = replace(
        sample, heads_by_site={"encoder.0": 4, "encoder.1": 4, "decoder.0": 1}, of={"encoder": 8, "decoder": 1},
        points=(point, replace(point, keep=1), replace(point, way="random")),
    )  # fmt: skip
    held = {head: [made.evidence(role, "x", 0.9)] for head, role in roles.items()}
    return [
        Record(STUDY, Signature(), RoleImportance((COMPARISON,))),
        made.changed(made.roles(), roles=held),
        Record("tradeoff", Signature(), tradeoff),
    ]


def test_numbers_by_hand() -> None:
    """Two of three kept; the layer profile (1, 2) with (1, 2) marked of 4 each keeps 1/4 + 2 * 2/4 on average."""
    roles = {"encoder.0.0": "positional", "encoder.1.0": "positional", "encoder.1.1": "positional"}
    roles |= {"encoder.0.1": "delimiter", "decoder.0.0": "positional"}
    assert headline(records(roles, ["encoder.0.0", "encoder.1.0", "encoder.1.3"])) == (
        "Of the 2 most important encoder heads, 2 have a role of the paper (positional, syntactic or rare); by chance "
        "it would be 0.8. Pruned to 3 of 8 encoder heads, the model keeps 2 of 3 heads with such a role; a random "
        "choice in the same layers would keep 1.2."
    )


def test_roles_that_were_not_measured_are_named() -> None:
    """Without trees, "0 have a role of the paper (positional, syntactic or rare)" was said of syntactic heads."""
    comparison = replace(COMPARISON, roles=("positional", "rare"))
    assert "role of the paper (positional or rare; syntactic not measured)" in headline(
        [Record(STUDY, Signature(), RoleImportance((comparison,)))]
    )


def test_nothing_without_roles_of_the_paper() -> None:
    assert "Pruned" not in headline(records({"encoder.0.1": "delimiter"}, ["encoder.0.0", "encoder.1.0"]))
    assert headline([made.speed()]) == ""
