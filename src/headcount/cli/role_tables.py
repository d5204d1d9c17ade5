"""Tables of what heads do. Knows numbers of records, never a live model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from headcount.cli.headmap import colour
from headcount.heads import PAPER_ROLES
from headcount.report.fitted import FittedTable
from headcount.report.verdicts import verdict

CLEAREST = 10  # heads of each role that are shown unless all are asked for
_STYLES = dict(zip(PAPER_ROLES, ("magenta", "green", "yellow"), strict=True))  # the colours of Voita et al. 2019


def heads_by_role(parts: Mapping[str, Any]) -> dict[str, dict[str, list[Mapping[str, Any]]]]:
    """role -> head -> evidence of the labels it holds; the paper's roles first, the clearest head and label first."""
    by_role: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for head, held in parts["roles"].items():
        for evidence in sorted(held, key=_distance):
            by_role.setdefault(evidence["role"], {}).setdefault(head, []).append(evidence)
    order = sorted(
        by_role, key=lambda role: (PAPER_ROLES.index(role) if role in PAPER_ROLES else len(PAPER_ROLES), role)
    )
    return {role: dict(sorted(by_role[role].items(), key=lambda item: _distance(item[1][0]))) for role in order}


def _distance(evidence: Mapping[str, Any]) -> float:
    """How far the value is from what it has to reach; negative above it, so that the clearest comes first."""
    return float(evidence["threshold"] - evidence["value"])


def summary_table(parts: Mapping[str, Any]) -> FittedTable:
    """How many heads play each role, and the clearest of them."""
    table = FittedTable()
    table.add_column("role", no_wrap=True)
    table.add_column("heads", justify="right", no_wrap=True)
    table.add_column("clearest", no_wrap=True)
    table.add_column("what")
    for column in ("value", "baseline"):
        table.add_column(column, justify="right", no_wrap=True)
    for role, heads in heads_by_role(parts).items():
        head, (best, *_) = next(iter(heads.items()))
        numbers = f"{best['value']:.2f}", f"{best['baseline']:.2f}"
        table.add_row(_role(role), str(len(heads)), _head(head), best["label"], *numbers)
    without = sum(not held for held in parts["roles"].values())
    table.add_row(Text("no role", style="dim"), str(without))
    return table


def clearest_table(heads: Mapping[str, list[Mapping[str, Any]]]) -> FittedTable:
    """The clearest heads of one role: their clearest label with its numbers, and what else of the role they do."""
    chosen = list(heads.items())[:CLEAREST]
    several = any(len(held) > 1 for _, held in chosen)
    table = FittedTable()
    table.add_column("head", no_wrap=True)
    table.add_column("what")
    for column in ("value", "95% interval", "baseline", "trials"):
        table.add_column(column, justify="right", no_wrap=True)
    if several:
        table.add_column("also")
    for head, (best, *others) in chosen:
        interval = "" if best["low"] is None else f"{best['low']:.2f} - {best['high']:.2f}"
        cells = [f"{best['value']:.2f}", interval, f"{best['baseline']:.2f}", str(best["trials"])]
        cells += [", ".join(other["label"] for other in others)] if several else []
        table.add_row(_head(head), best["label"], *cells)
    return table


def every_head_table(parts: Mapping[str, Any]) -> FittedTable:
    """Each head's confidence, what specials take of its attention, and its roles with value and baseline."""
    table = FittedTable()
    table.add_column("head", no_wrap=True)
    table.add_column("confidence", justify="right", no_wrap=True)
    table.add_column("on specials", justify="right", no_wrap=True)
    table.add_column("roles (value / baseline)")
    for head, confidence in parts["confidence"].items():
        roles = Text()
        for evidence in parts["roles"][head]:
            roles.append("   " if roles else "")
            roles.append_text(_role(evidence["role"], evidence["label"]))
            roles.append(f" {evidence['value']:.2f}/{evidence['baseline']:.2f}")
        numbers = f"{confidence['value']:.2f}", f"{parts['left_out'][head]:.2f}"
        table.add_row(_head(head), *numbers, roles or Text("-", "dim"))
    return table


def syntax_table(rows: list[Mapping[str, Any]]) -> FittedTable:
    """The best head of each relation and direction: accuracy, interval, baseline."""
    table = FittedTable(keys=2)
    for column in ("relation", "best head", "accuracy", "95% interval", "baseline", "instances", "syntactic"):
        words = column in ("relation", "best head", "syntactic")
        table.add_column(column, justify="left" if words else "right", no_wrap=column != "syntactic")
    for row in rows:
        interval = f"{100 * row['low']:.0f} - {100 * row['high']:.0f}" if row["low"] is not None else ""
        shares = f"{100 * row['value']:.0f}%", interval, f"{100 * row['baseline']:.0f}%"
        table.add_row(row["label"], row["head"], *shares, str(row["trials"]), verdict(row))
    return table


def _role(role: str, label: str = "") -> Text:
    return Text(f"{role} {label}".rstrip(), style=_STYLES.get(role, "cyan"))


def _head(name: str) -> Text:
    return Text(name, style=colour(name.split(".")[0]))


def played_table(played: Mapping[str, Any]) -> FittedTable:
    """What is lost with the role instead of the head, and without the head; what share of the head its role is."""
    table = FittedTable()
    table.add_column("head", no_wrap=True)
    table.add_column("role")
    for column in ("role instead", "95%", "without head", "kept", "95%"):
        table.add_column(column, justify="right", no_wrap=True)
    for head, worth in played["heads"].items():
        alone, kept = worth["alone"], worth["kept"]
        share = (f"{kept['value']:.0%}", f"{kept['low']:.0%} to {kept['high']:.0%}") if kept else ("-", "")
        table.add_row(
            _head(head), f"{worth['role']} {worth['label']}", f"{alone['difference']:+.4f}",
            f"{alone['low']:+.4f} to {alone['high']:+.4f}", f"{worth['off']['difference']:+.4f}", *share,
        )  # fmt: skip
    return table
