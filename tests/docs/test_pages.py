"""The documentation keeps its word: everything has its page, every line can be typed, every link leads somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import torch

import headcount as hc
import zoo
from headcount.cli.commands.study import STUDIES
from headcount.cli.main import commands, main
from headcount.pruning.pipeline import chooser_names, compensations
from headcount.pruning.tuning import tuners
from headcount.registry import Registry
from headcount.report.exhibits import exhibits
from headcount.report.figure import figures
from headcount.studies.whole import PAPERS
from tokens import sentences, word_tokenizer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
FOLDERS = ("how-to", "commands", "studies")
TYPED = [ROOT / "README.md", DOCS / "quickstart.md", *(page for page in PAGES if page.parent.name in FOLDERS)]
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_EVERYWHERE = {"--help", "--debug", "--version"}


def called(path: Path) -> str:
    return str(path.relative_to(ROOT))


def fenced(page: Path, language: str) -> list[str]:
    return [text for name, text in _FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def inline(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", _FENCE.sub("", page.read_text(encoding="utf-8")))


def calls(line: str) -> Iterator[list[str]]:
    """Arguments of every call of headcount in a line of a shell."""
    if "headcount" not in line:
        return
    words = shlex.shlex(line, posix=True, punctuation_chars="|;&>")
    words.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|;&>"):
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        start = next((place for place, word in enumerate(part) if word == "headcount"), None)
        if start is not None:
            yield part[start + 1 :]


def reached(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The command that arguments lead to, and the rest of them."""
    command: click.Command = main
    rest = [word for word in arguments if word != "--debug"]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(click.Context(command), rest[0])
        assert found is not None, f"there is no command {' '.join(arguments)}"
        command, rest = found, rest[1:]
    return command, rest


@cache
def options_of(command: click.Command) -> set[str]:
    own = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    if isinstance(command, click.Group):
        members = (
            command.get_command(click.Context(command), name) for name in command.list_commands(click.Context(command))
        )
        return own.union(*(options_of(member) for member in members if member is not None))
    return own


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def _as_it_is(_: Any, value: Any, __: Any, ___: Any) -> Any:
    return value


@pytest.fixture
def _no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that the examples name need not be there."""
    for kind in (click.Path, click.File):
        monkeypatch.setattr(kind, "convert", _as_it_is)


def test_every_command_and_every_study_has_its_page_and_a_line_in_the_index() -> None:
    for folder, names in (("commands", commands.names()), ("studies", STUDIES.names())):
        pages = {page.stem for page in (DOCS / folder).glob("*.md")} - {"README"}
        index = (DOCS / folder / "README.md").read_text(encoding="utf-8")
        assert pages == set(names)
        assert [name for name in names if f"]({name}.md)" not in index] == []


@pytest.mark.parametrize("page", TYPED, ids=called)
@pytest.mark.usefixtures("_no_files")
def test_every_line_can_be_typed(page: Path) -> None:
    lines = [line for text in fenced(page, "") for line in text.replace("\\\n", " ").splitlines()]
    found = [arguments for line in lines for arguments in calls(line)]
    if page.parent.name in ("commands", "studies"):
        assert found, "a page without an example"
    for arguments in found:
        command, rest = reached(arguments)
        try:
            command.make_context("headcount", rest)
        except click.UsageError as error:
            pytest.fail(f"headcount {' '.join(arguments)}: {error.format_message()}")


@pytest.mark.parametrize("page", TYPED, ids=called)
def test_every_option_that_is_named_exists(page: Path) -> None:
    own = commands[page.stem] if page.parent.name == "commands" and page.stem in commands else main
    for text in inline(page):
        for call in list(calls(text)) if text.startswith(("headcount ", "accelerate ")) else []:
            if call[0].isupper() or call[0] == "...":  # headcount COMMAND --help
                continue
            command, rest = reached(call)
            assert options_in(" ".join(rest)) <= options_of(command) | _EVERYWHERE, text
        if not text.startswith(("headcount ", "accelerate ")):
            assert options_in(text) <= options_of(own) | _EVERYWHERE, text


def test_wrong_lines_are_noticed() -> None:
    """The checks above see something."""
    assert list(calls("echo 'a|b' | headcount translate tiny > out.txt  # why")) == [["translate", "tiny"]]
    command, rest = reached(["study", "curves", "tiny", "--orderz", "x"])
    with pytest.raises(click.UsageError, match="orderz"):
        command.make_context("headcount", rest)
    assert not options_in("--orderz") <= options_of(main)
    with pytest.raises(AssertionError, match="no command"):
        reached(["studdy"])


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("commands/figure.md", figures.names()),
        ("commands/score.md", Registry[Any]("score", "headcount.scores", "SCORE").names()),
        ("commands/prune.md", (*chooser_names(), *tuners.names(), *compensations.names())),
    ],
)
def test_pages_know_all_members(page: str, names: tuple[str, ...]) -> None:
    assert set(names) <= set(inline(DOCS / page))


def test_the_gallery_has_every_figure_and_a_small_report() -> None:
    assert set(figures.names()) - set(inline(DOCS / "gallery.md")) == {path.stem for path in DOCS.glob("gallery/*.png")}
    assert (DOCS / "gallery" / "report.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("paper", ["voita2019", "michel2019"])
def test_pages_of_papers_have_every_part_table_and_figure(paper: str) -> None:
    text = (DOCS / "studies" / f"{paper}.md").read_text(encoding="utf-8")
    headings = " ".join(line for line in text.splitlines() if line.startswith("## "))
    assert [part for part in PAPERS[paper] if f"`{part}`" not in headings] == []
    assert [one.name for one in exhibits(paper) if one.name not in text] == []
    assert [one.figure for one in exhibits(paper) if one.figure and f"`{one.figure}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=called)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", _FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_page_can_be_found() -> None:
    """From the README by links, in any number of steps."""
    seen, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
        ahead += [
            (page.parent / link).resolve() for link in links if "://" not in link and (page.parent / link).is_file()
        ]
    assert [called(page) for page in PAGES if page not in seen] == []


GENERATED = {"docs/records.md", "docs/claims.md"}
WRAPPED = sorted({*PAGES, *ROOT.glob("*.md")} - {ROOT / page for page in GENERATED})


@pytest.mark.parametrize("page", WRAPPED, ids=called)
def test_lines_of_prose_have_at_most_120_characters(page: Path) -> None:
    """Outside code and tables; a line that is a single name, such as that of a test, cannot be split."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    lines = [line for line in prose if not line.lstrip().startswith("|") and " " in line.strip()]
    assert [line for line in lines if len(line) > 120] == []


def test_the_example_of_a_new_member_works() -> None:
    """The score of how-to/add-a-member.md does what the page says of it."""
    (code,) = fenced(DOCS / "how-to" / "add-a-member.md", "python")
    space: dict[str, Any] = {}
    exec(compile(code, "add-a-member.md", "exec"), space)
    model = zoo.build("bert")
    site = hc.locate(model)[0]
    with torch.no_grad():
        for parameter in (site.module.value.weight, site.module.value.bias):
            parameter[: site.head_dim] = 0  # the first head says nothing
    texts = sentences(5)
    task = hc.task("classification", texts=texts, labels=[0] * 5, tokenizer=word_tokenizer(), batch_size=2)
    scores = space["SCORE"](model, task)
    assert scores["encoder.0.0"] == 0
    assert min(scores[head] for head in scores.heads[1:]) > 0
    again = hc.task("classification", texts=texts, labels=[0] * 5, tokenizer=word_tokenizer(), batch_size=5)
    assert space["SCORE"](model, again).numbers() == pytest.approx(scores.numbers(), rel=1e-4)  # padding does not count


def test_the_demo_has_the_verdicts_of_its_page() -> None:
    shown = re.search(
        r"(\d+) claims of the papers: here ([^(<]+?) \(", (DOCS / "gallery/report.html").read_text("utf-8")
    )
    told = " ".join((DOCS / "results/demo.md").read_text("utf-8").split())
    assert shown
    assert f"Of {shown[1]} claims of the papers here {shown[2]}." in told
