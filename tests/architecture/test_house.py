"""Rules of the house that a reader could break without noticing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import headcount

SOURCE = Path(headcount.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TRAVELLING = ("slicing.py", "adapters.py", "reshape.py")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _trees_of_this_module() -> Iterator[None]:
    yield
    tree.cache_clear()


def calls(path: Path) -> set[str]:
    nodes = ast.walk(tree(path))
    return {node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}


def test_only_hooks_registers_hooks() -> None:
    registering = {
        path.name for path in FILES if any(name.startswith("register_") and "hook" in name for name in calls(path))
    }
    assert registering == {"hooks.py"}


def test_nothing_reads_or_writes_pickles() -> None:
    words = ("pickle", "torch.load", "torch.save", "joblib")
    assert not [(path.name, word) for path in FILES for word in words if word in path.read_text(encoding="utf-8")]


def test_nothing_starts_a_program_or_runs_text_as_code() -> None:
    """No shell and no eval: text of a user or of a record is never a command. Nor is an archive unpacked."""
    forbidden = {"os.system", "os.popen", "eval", "exec", "compile"}
    wrong = []
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in forbidden:
                wrong.append((path.name, ast.unparse(node.func)))
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                wrong += [(path.name, name) for name in names & {"subprocess", "pty", "tarfile", "zipfile"}]
            if isinstance(node, ast.Attribute) and re.match(r"os\.(exec|spawn|posix_spawn)", ast.unparse(node)):
                wrong.append((path.name, ast.unparse(node)))
    assert wrong == []


def test_temporary_files_have_names_that_nobody_can_guess_or_read() -> None:
    """tempfile makes them for the user alone; a name made by hand, or mktemp, could be taken by another user."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in FILES}
    assert [name for name, text in texts.items() if "mktemp(" in text or "gettempdir" in text or '"/tmp' in text] == []


def _names(found: list[tuple[Path, str]]) -> set[str]:
    return {str(path.relative_to(SOURCE)) for path, _ in found}


def _written(path: Path) -> Iterator[tuple[str, bool]]:
    """Calls of the journal that write a file: their name, and whether they say what they may replace."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).removeprefix("journal.")
            if name in ("new_file", "write_text", "write_json"):
                yield name, any(keyword.arg == "replaces" for keyword in node.keywords)


def test_a_result_says_what_it_may_replace() -> None:
    """All else stays as NAME.old. Only the files listed here write without a word of it."""
    silent = _names([(path, name) for path in FILES for name, replaces in _written(path) if not replaces])
    silent -= {"journal.py"}
    unfinished = {  # states, settings and pieces, in folders that only work with the same settings goes on in
        "cli/unfinished.py", "corpora/encoded.py", "pruning/folder.py", "pruning/trail.py", "studies/parts_folder.py",
        "studies/point.py", "studies/specialisation.py", "surgery/price.py", "training/log.py", "training/state.py",
    }  # fmt: skip
    new_folder = {  # into one that is empty, and replaces another only when asked
        "checkpoints/card.py", "checkpoints/chosen_on.py", "checkpoints/export_list.py", "checkpoints/standalone.py",
        "exports/vllm.py", "pruning/folder.py",
    }  # fmt: skip
    assert silent == unfinished | new_folder | {"exports/export.py"}, "the last with --overwrite"


def test_only_the_journal_removes_and_renames_files() -> None:
    removing = {"unlink", "rmtree", "rmdir", "rename", "renames", "remove_tree", "removedirs"}
    found = _names([(path, name) for path in FILES for name in calls(path) & removing]) - {"journal.py", "locks.py"}
    assert found == {
        "cli/commands/evaluate.py",  # translations that the record beside them has too
        "corpora/vocabulary.py", "exports/openvino.py",  # in a new folder
        "file_list.py",  # an empty list, of a full disk
        "pruning/folder.py",  # settings of work that has not begun, and steps of a search that is finished
        "report/figure.py",  # figures of a record that is measured again
        "surgery/spill.py",  # temporary files
    }  # fmt: skip


def test_no_drawers() -> None:
    assert not {path.stem for path in FILES} & {"utils", "util", "helpers", "common", "misc"}


def test_every_file_says_what_it_is() -> None:
    assert len(FILES) > 100
    assert [str(path.relative_to(SOURCE)) for path in FILES if not ast.get_docstring(tree(path))] == []


def test_to_json_gives_text_everywhere() -> None:
    """What gives a dict is called to_plain."""
    nodes = ((path, node) for path in FILES for node in ast.walk(tree(path)))
    methods = [
        (path.name, node) for path, node in nodes if isinstance(node, ast.FunctionDef) and node.name == "to_json"
    ]
    assert methods
    assert not [name for name, node in methods if node.returns is None or ast.unparse(node.returns) != "str"]


def test_only_tasks_are_asked_by_name_what_they_are() -> None:
    """Others ask a task for a property, such as `writes`; checkpoints know which class of model each task has."""
    names = {"classification", "embedding", "language-modelling", "masked-language-modelling", "translation"}
    asking = {
        path.relative_to(SOURCE).parts[0]
        for path in FILES
        if SOURCE / "tasks" not in path.parents
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Compare)
        for value in node.comparators
        if isinstance(value, ast.Constant) and value.value in names
    }
    assert asking == {"checkpoints"}


def test_public_names_exist_and_are_complete() -> None:
    assert sorted(headcount.__all__) == headcount.__all__
    assert {"prune", "load", "HeadGrid"} <= set(headcount.__all__)
    for name in headcount.__all__:
        assert getattr(headcount, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        headcount.no_such_name  # noqa: B018


@pytest.mark.parametrize("code", ["import headcount", "from headcount.cli.main import main; main(['--help'])"])
def test_importing_and_help_do_not_pay_for_torch(code: str) -> None:
    loaded = "'torch' in sys.modules, 'transformers' in sys.modules"
    check = f"import sys, atexit; atexit.register(lambda: print('LOADED', {loaded}))"
    done = subprocess.run([sys.executable, "-c", f"{check}; {code}"], capture_output=True, text=True, check=True)
    assert "LOADED False False" in done.stdout


@pytest.mark.parametrize("name", TRAVELLING)
def test_code_that_travels_in_checkpoints_imports_nothing_else_of_headcount(name: str) -> None:
    for node in ast.walk(tree(SOURCE / "surgery" / name)):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert f"{node.module}.py" in TRAVELLING
        elif isinstance(node, ast.ImportFrom | ast.Import):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            assert not str(module).startswith("headcount")


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _rebound(function: ast.AST) -> set[str]:
    """Names that a function assigns and that `:=` inside one of its comprehensions binds as well."""
    inside = [node for whole in ast.walk(function) if isinstance(whole, _COMPREHENSIONS) for node in ast.walk(whole)]
    walrus = {node.target.id for node in inside if isinstance(node, ast.NamedExpr)}
    assigned = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in ast.walk(ast.Module(node.targets, []))
        if isinstance(target, ast.Name)
    }
    return walrus & assigned


def test_no_comprehension_replaces_a_variable_of_its_function() -> None:
    """`:=` in a comprehension binds in the function around it: a value once pooled was replaced so, unseen."""
    rebound = [
        f"{path.relative_to(SOURCE)}: {function.name} {sorted(_rebound(function))}"
        for path in FILES
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef) and _rebound(function)
    ]
    assert rebound == []
