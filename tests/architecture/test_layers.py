"""The arrows between the layers: a module imports what stands below it, never up or sideways."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import headcount

SOURCE = Path(headcount.__file__).parent

# From top to bottom; parts of one line may not import each other.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("exports", "studies"),
    ("claims", "report", "pruning"),
    ("training",),
    ("checkpoints",),
    ("surgery",),
    ("selection",),
    ("scores", "head_roles"),
    ("probes", "tasks"),
    ("corpora", "sites"),
    ("hooks", "record", "timing", "processes"),
    ("metrics", "journal"),
    ("statistics",),
    ("heads", "registry", "locks", "file_list", "exchange", "mounts", "progress", "options"),
    ("notebook",),
    ("errors", "plural"),
)
REPORT_MAY_IMPORT = {"record", "statistics", "heads", "registry", "errors", "journal", "plural"}
HEIGHT = {part: -number for number, line in enumerate(LAYERS) for part in line}


def part_of(module: str) -> str:
    """The layer's name in `headcount.<layer>.rest`; the package itself has none."""
    return module.split(".")[1] if module.count(".") else ""


@cache
def imports(path: Path) -> frozenset[str]:
    """All modules of headcount that a file imports, also inside functions."""
    package = ["headcount", *path.relative_to(SOURCE).with_suffix("").parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*package[: len(package) - node.level + 1], node.module or ""]) if node.level else node.module
            )
            found |= {f"{base}.{alias.name}" for alias in node.names} if base == "headcount" else {str(base)}
    return frozenset(name for name in found if name.split(".")[0] == "headcount")


def arrows() -> list[tuple[Path, str, str]]:
    found = []
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own != "__init__":
            found += [(path, own, part_of(module)) for module in imports(path)]
    return found


def test_every_part_has_a_layer() -> None:
    parts = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert parts <= set(HEIGHT)


def test_arrows_point_down() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path, own, other in arrows()
        if other in HEIGHT and own != other and HEIGHT[other] >= HEIGHT[own]
    ]
    assert not wrong


def test_arrows_are_found() -> None:
    """The check above sees something: surgery is known to import probes."""
    assert ("surgery", "probes") in {(own, other) for _, own, other in arrows()}


def test_report_knows_records_only() -> None:
    assert {other for _, own, other in arrows() if own == "report" and other != "report"} <= REPORT_MAY_IMPORT


def test_modules_inside_a_layer_do_not_import_in_circles() -> None:
    edges: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(["headcount", *path.relative_to(SOURCE).with_suffix("").parts])
        if not name.endswith("__init__"):
            edges[name] = {module for module in imports(path) if module != name}

    TopologicalSorter(edges).prepare()  # raises with the circle, if there is one
