"""The Python reference has every public name, and its examples run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import headcount as hc
import zoo
from tokens import word_tokenizer

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = sorted(page for page in REFERENCE.glob("*.md") if page.stem != "README")
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^::: headcount\.(\w+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny classifier in `model/`."""
    folder = tmp_path_factory.mktemp("reference")
    hc.save(zoo.build("bert"), folder / "model", tokenizer=word_tokenizer())
    return folder


def test_every_public_name_has_one_entry_and_a_line_in_the_index() -> None:
    entries = [name for page in PAGES for name in _ENTRY.findall(page.read_text(encoding="utf-8"))]
    assert sorted(entries) == hc.__all__
    index = (REFERENCE / "README.md").read_text(encoding="utf-8")
    assert [name for name in hc.__all__ if f"`{name}`" not in index] == []


def test_every_parameter_of_a_public_function_is_explained() -> None:
    """In the section `Args` of its docstring, as the reference is generated from it."""
    for name in hc.__all__:
        function = getattr(hc, name)
        assert inspect.getdoc(function), name
        parameters = list(inspect.signature(function).parameters) if inspect.isfunction(function) else []
        explained = (inspect.getdoc(function) or "").partition("Args:")[2]
        if len(parameters) > 2:
            assert [each for each in parameters if f"\n    {each}: " not in explained] == [], name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run_and_use_every_name_of_their_page(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = page.read_text(encoding="utf-8")
    code = "".join(_FENCE.findall(text))
    exec(compile(code, page.name, "exec"), {"__name__": "example"})
    functions = [name for name in _ENTRY.findall(text) if name[0].islower()]
    assert [name for name in functions if f"hc.{name}" not in code] == []
