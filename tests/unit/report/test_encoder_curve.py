"""Our numbers stand beside those of the paper only if they are of the same heads and the same metric."""

from __future__ import annotations

from typing import Any

import pytest

import records
from headcount.record import Record, Signature
from headcount.record.codec import encode
from headcount.report.sections.all_kinds import SECTION as ALL_KINDS
from headcount.report.sections.pruned import SECTION as PRUNED
from headcount.report.sections.sweep import SECTION as SWEEP
from headcount.report.sections.tradeoff import SECTION as TRADEOFF
from records import measured, names, pruning, typed

WHAT = "WMT, encoder heads left: BLEU"
ENCODER, CROSS = names({"encoder.0": 4, "encoder.1": 4}), names({"cross.0": 4})


def ours(section: Any, record: Record, what: str = WHAT) -> str | None:
    (row,) = (row for row in section.printed(record) if row.what == what)
    value: str | None = row.ours
    return value


def parts_of_pruning(gone: list[str], gated: list[str], metric: str = "BLEU") -> dict[str, Any]:
    left = [name for name in [*ENCODER, *CROSS] if name not in gone]
    kinds = {kind: sum(name.startswith(kind) for name in left) for kind in ("encoder", "cross")}
    gates = {**encode(records.gates().parts.gates), "values": dict.fromkeys(gated, 0.1)}
    ends = {"before": {**measured(30.0), "metric": metric}, "after": {**measured(29.0), "metric": metric}}
    return {**pruning(gone, left, **ends), "kept_by_kind": kinds, "choice_details": {"gates": gates}, "metric": metric}


def pruned(*case: Any) -> Record:
    return typed("prune", Signature("shop/model-a"), parts_of_pruning(*case))


def sweep(*case: Any) -> Record:
    parts = parts_of_pruning(*case)
    point = {name: parts[name] for name in ("kept_by_kind", "heads", "quality", "removed_heads")}
    return typed("prune-sweep", Signature("shop/model-a"), {"sweep": {"0.1": point}, "method": "l0", "elsewhere": []})


@pytest.mark.parametrize(
    ("section", "made", "beside"), [(PRUNED, pruned, "8: 30.00, 6: 29.00"), (SWEEP, sweep, "6: 29.00")]
)
def test_only_encoder_heads_and_bleu(section: Any, made: Any, beside: str) -> None:
    assert ours(section, made(ENCODER[:2], ENCODER)) == beside
    assert ours(section, made([*ENCODER[:2], CROSS[0]], [*ENCODER, *CROSS])) is None
    assert ours(section, made(CROSS[:2], CROSS)) is None
    assert ours(section, made(ENCODER[:2], ENCODER, "loss")) is None


def test_gates_of_one_kind_do_not_say_which_kind_goes_first() -> None:
    first = "which kind goes first"
    assert ours(PRUNED, pruned(ENCODER[:2], ENCODER), first) is None
    both = pruned([*ENCODER[:3], *CROSS[:2]], [*ENCODER, *CROSS])
    assert (len(ENCODER), len(CROSS)) == (8, 4)
    assert ours(PRUNED, both, first) == "most gone first: cross 50%, encoder 38%"  # counts name the largest kind first


def test_a_tradeoff_shows_its_gates() -> None:
    record = records.tradeoff(kinds=False)
    points = encode(record.parts.points)
    late = records.changed(record, points=points[::-1])  # gates come last
    assert str(ours(TRADEOFF, late)).startswith("l0 16: ")
    for other in ({"pruned": "cross heads"}, {"pruned": "encoder and cross heads"}, {"metric": "loss"}):
        assert ours(TRADEOFF, records.changed(record, **other)) is None
    assert ours(TRADEOFF, records.tradeoff()) is None


def test_heads_of_all_kinds_have_their_metric() -> None:
    record = records.changed(records.tradeoff(), metric="loss")
    assert all(row.paper.endswith("BLEU") for row in ALL_KINDS.printed(record))
    assert all(row.ours is None or row.ours.endswith(" loss") for row in ALL_KINDS.printed(record))
