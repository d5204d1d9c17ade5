r"""Means and t-intervals over models: numbers of records of the same study, one record for each model.

    python docs/results/over_models.py "spearman.*.all.r" agreement-*/record.json
    python docs/results/over_models.py "compensations.lstsq.*.value / compensations.none.*.value" \
        compensation-*/record.json

An expression is the path of a number in the parts of a record, or the ratio (/) or difference (-) of two. A star stands
for every key; stars of a second path take the keys of the first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from headcount.statistics.runs import t_interval


def paths(parts: Any, pattern: list[str]) -> Iterator[tuple[str, ...]]:
    """All paths in the parts of a record that match a pattern, as the keys that its stars stand for."""
    if not pattern:
        yield ()
        return
    key, *rest = pattern
    for name in _keys(parts) if key == "*" else [key]:
        try:
            child = _child(parts, name)
        except (KeyError, IndexError, TypeError, ValueError):
            continue
        for stars in paths(child, rest):
            yield (name, *stars) if key == "*" else stars


def number(parts: Any, pattern: list[str], stars: tuple[str, ...]) -> float:
    """The number at a path. Stars are replaced in order."""
    names = iter(stars)
    for key in pattern:
        parts = _child(parts, next(names) if key == "*" else key)
    return float(parts)


def evaluate(expression: str, records: list[Any]) -> dict[str, list[float]]:
    """The value of an expression in every record, by the keys of its stars."""
    for sign in ("/", "-"):
        left, operator, right = expression.partition(f" {sign} ")
        if operator:
            break
    first, second = left.split("."), right.split(".")
    values = {}
    for stars in paths(records[0], first):
        row = [number(parts, first, stars) for parts in records]
        if right:
            others = [number(parts, second, stars) for parts in records]
            row = [a / b if sign == "/" else a - b for a, b in zip(row, others, strict=True)]
        values[" ".join(stars)] = row
    if not values:
        raise SystemExit(f"{expression!r} matches nothing. The parts are {', '.join(records[0])}.")
    return values


def _keys(parts: Any) -> list[str]:
    return (
        list(parts)
        if isinstance(parts, dict)
        else [str(k) for k in range(len(parts))]
        if isinstance(parts, list)
        else []
    )


def _child(parts: Any, key: str) -> Any:
    return parts[int(key)] if isinstance(parts, list) else parts[key]


def main() -> None:
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    records = [json.loads(Path(path).read_text())["parts"] for path in sys.argv[2:]]
    for name, row in evaluate(sys.argv[1], records).items():
        interval = t_interval(row)
        each = ", ".join(f"{value:.4g}" for value in row)
        click.echo(f"{name:40} {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})   of {each}")


if __name__ == "__main__":
    main()
