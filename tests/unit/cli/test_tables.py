"""Every table of the commands, at 40, 80 and 120 columns: nothing is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import records
import subjects as made
from headcount.cli import role_tables, tables
from screens import WIDTHS, check_whole, screen

QUALITY = {"metric": "BLEU", "value": 30.12, "low": 29.12, "high": 31.12}
COST: dict[str, Any] = {
    "length": 128, "parameters": 134_515_008, "flops": 2.5e10, "cache_bytes": 5.9e6,
    "kinds": {kind: {"heads": 72, "parameters": 1e7, "flops": 1e9} for kind in ("encoder", "decoder", "cross")},
}  # fmt: skip


def sites(heads: int) -> list[dict[str, Any]]:
    return [
        {"site": f"decoder.{layer}", "kind": "decoder", "heads": list(range(heads - layer % 3)), "of": heads,
         "head_dim": 64, "kv_heads": 3, "parameters_per_head": 147_456, "obstacle": None}
        for layer in range(12)
    ]  # fmt: skip


def alone(heads: int) -> dict[str, Any]:
    parts = dict(made.ablation(made.even(12, heads)).parts)
    return {**parts, "all_but_one_chosen_elsewhere": parts["all_but_one"]}


def curve(heads: int) -> dict[str, Any]:
    return {**records.curves().parts, "curve": records.curves().parts["curves"][0]["points"]}


def sweep(heads: int) -> dict[str, Any]:
    quality = {"cut": QUALITY, "after": QUALITY}
    point = {"kept": {"encoder": heads, "decoder": heads, "cross": heads}, "settled": 0.93, "quality": quality}
    return {"0.01": point, "0.03": point}


def fitted(heads: int) -> dict[str, Any]:
    site = {"rho": 0.0123, "explained_without": 0.912, "explained": 0.987}
    return {
        "how": "lstsq",
        "rows": 12345,
        "sites": {f"decoder.{layer}": site for layer in range(heads)},
        "quality": QUALITY,
    }


def compared(heads: int) -> dict[str, Any]:
    parts = dict(records.tradeoff().parts)
    difference = {"difference": -0.58, "low": -1.15, "high": 0.05}
    row = {"way": "rank-gradient+lstsq/distilled", "keep": heads, "seeds": [0, 1]}
    row |= dict.fromkeys(("lost", "lost_tuned", "against"), difference)
    return {**parts, "compared": [row], "against": "rank-gradient"}


def all_kinds(heads: int) -> dict[str, Any]:
    kept = {"encoder": heads, "decoder": heads, "cross": heads}
    row = {"kept": kept, "way": "l0/distilled", "trained": QUALITY, "scratch": QUALITY}
    return {"of": list(kept), "all_kinds": [{**row, "seed": 0}, {**row, "seed": 1}]}


def drift(heads: int) -> list[dict[str, Any]]:
    roles = {role: {"whole": heads, "left": 3} for role in ("positional", "syntactic", "rare", "current-token")}
    return [{"way": "rank-gradient", "heads": heads, "same": 3, "roles": roles, "functions": {"whole": 12, "left": 9}}]


def sizes(heads: int) -> dict[str, Any]:
    size = {"heads": heads, "parameters": 1.3e8, "weight_bytes": 5e8, "cache_bytes": 5e6, "flops": 2e10}
    return {"runs/half-of-the-heads": size, "runs/whole": size}


def roles(heads: int) -> dict[str, Any]:
    parts = dict(made.roles(made.even(3, heads, ("decoder",))).parts)
    return {**parts, "left_out": dict.fromkeys(parts["roles"], 0.25)}


TABLES: dict[str, Callable[[int], Any]] = {
    "epochs": lambda n: tables.epoch_table([{"epoch": 1, "step": n, "loss": 1.234, "learning_rate": 1e-4}]),
    "sites": lambda n: tables.site_table(sites(n)),
    "alone": lambda n: tables.alone_table(alone(n)),
    "curve": lambda n: tables.curve_table(curve(n)),
    "curves": lambda _: tables.curves_table(records.curves().parts, 0.1),
    "dynamics": lambda _: tables.dynamics_table(records.dynamics().parts),
    "speed": lambda _: tables.speed_table(records.speed().parts),
    "size": lambda n: tables.size_table(sizes(n)),
    "numbers": lambda n: tables.number_table("rules", {"ding, lrp": {f"encoder-{i}": 0.25 for i in range(n)}}),
    "compensation": lambda n: tables.compensation_table(fitted(n)),
    "tradeoff": lambda n: tables.tradeoff_table(compared(n)),
    "all kinds": lambda n: tables.all_kinds_table(all_kinds(n)),
    "drift": lambda n: tables.drift_table(drift(n)),
    "sweep": lambda n: tables.sweep_table(sweep(n)),
    "cost": lambda _: tables.cost_table({"the whole model": COST, "without heads": COST}),
    "attention": lambda n: tables.attention_table(*records.attention(n).parts["attention"].values()),
    "roles": lambda n: role_tables.summary_table(roles(n)),
    "clearest": lambda n: role_tables.clearest_table(role_tables.heads_by_role(roles(n))["syntactic"]),
    "every head": lambda n: role_tables.every_head_table(roles(n)),
    "syntax": lambda n: role_tables.syntax_table(roles(n)["syntax"]),
}  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("heads", [12, 32])
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_cut(name: str, heads: int, width: int) -> None:
    check_whole(TABLES[name](heads), width)


def test_every_table_is_tried() -> None:
    """A table that is added here is tried above; maps of heads have their own tests."""
    public = {name for module in (tables, role_tables) for name in vars(module) if name.endswith("_table")}
    names = {name for table in TABLES.values() for name in table.__code__.co_names if name.endswith("_table")}
    assert public - names == {"head_table", "effect_table"}


def test_ten_clearest_heads_of_each_role() -> None:
    parts = roles(12)
    heads = role_tables.heads_by_role(parts)
    assert list(heads) == ["positional", "syntactic", "rare", "delimiter"]
    assert len(heads["positional"]) == 9
    parts["roles"] = {
        name: [{**records.evidence("positional", "-1", 0.5 + place / 100)}] for place, name in enumerate(parts["roles"])
    }
    many = role_tables.heads_by_role(parts)["positional"]
    assert len(many) == 36
    text = screen(role_tables.clearest_table(many), 80)
    assert len(text.splitlines()) == 11
    assert [line.split()[0] for line in text.splitlines()[1:3]] == ["decoder.2.11", "decoder.2.10"]
    summary = screen(role_tables.summary_table(parts), 80)
    assert "positional     36  decoder.2.11  -1     0.85" in summary
    assert summary.splitlines()[-1].split() == ["no", "role", "0"]
