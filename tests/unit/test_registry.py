"""Registry."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headcount as hc
import zoo
from headcount.claims.claim import claims
from headcount.cli.main import commands
from headcount.errors import UnknownName, UsageError
from headcount.exports.export import RUNTIMES
from headcount.head_roles.role import roles
from headcount.pruning.pipeline import choosers, compensations
from headcount.pruning.tuning import tuners
from headcount.registry import Registry, plug_ins
from headcount.report.figure import figures
from headcount.report.section import sections
from headcount.scores.score import members
from headcount.sites.locate import families as located
from headcount.tasks.task import tasks
from tokens import word_tokenizer


@pytest.fixture
def families() -> Registry[object]:
    return Registry("family", "headcount.sites.families", "FAMILY")


def test_files_are_members(families: Registry[object]) -> None:
    assert "bert" in families
    assert "gpt-neox" in families
    assert families["gpt-neox"] is families["gpt_neox"]
    assert len(families) == len(families.names()) == len(list(families.items()))


def test_unknown_name_suggests(families: Registry[object]) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'bert'") as caught:
        families["bertt"]
    assert isinstance(caught.value, KeyError | ValueError)
    assert not str(caught.value).startswith('"')  # KeyError would quote the message


def test_of_very_many_names_only_similar_ones_are_listed() -> None:
    names = [f"task_{number}" for number in range(1000)] + [f"arc_{level}" for level in ("easy", "easier", "hard")]
    message = str(UnknownName("task", "arc_eas", names))
    assert message.endswith("Did you mean 'arc_easy' or 'arc_easier' or 'arc_hard'? 1,003 names are known.")
    assert "task_1," not in str(UnknownName("task", "zzz", names))


def test_added_members_and_taken_names(families: Registry[object]) -> None:
    families.add("mine", object())
    assert "mine" in families.names()
    for name in ("mine", "bert"):
        with pytest.raises(UsageError, match="exists already"):
            families.add(name, object())


def test_the_folder_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    read_text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda self, **options: reads.append(self) or read_text(self, **options))
    registry: Registry[object] = Registry("family", "headcount.sites.families", "FAMILY")
    assert len(dict(registry.items())) == len(registry)
    assert "bert" in registry
    assert len(reads) == len(set(reads))


def _install(folder: Path, entry: str) -> None:
    """What pip leaves of a package with one entry point."""
    metadata = folder / "headcount_alphabet-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: headcount-alphabet\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[headcount.scores]\n{entry}\n")
    (folder / "headcount_alphabet.py").write_text("SCORE = 'a score'\n")


@pytest.mark.parametrize(
    ("entry", "reason"), [("a_b = headcount_alphabet:SCORE", ""), ("a_b = no_such:SCORE", "no_such")]
)
def test_an_installed_package_adds_a_member(
    entry: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, entry)
    monkeypatch.syspath_prepend(tmp_path)
    plug_ins.cache_clear()
    try:
        scores: Registry[object] = Registry("score", "headcount.scores", "SCORE")
        assert "a-b" in scores
        assert {"a-b", "gradient"} <= set(scores.names())
        if reason:
            with pytest.raises(UsageError, match=f"of headcount-alphabet cannot be loaded .*{reason}"):
                scores["a-b"]
        else:
            assert scores["a-b"] == "a score"
    finally:
        plug_ins.cache_clear()


def test_groups_of_entry_points_are_those_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-member.md").read_text()
    registries = [members, roles, located, choosers, tuners, compensations, tasks, RUNTIMES, claims, figures, sections]
    groups = {registry.group for registry in registries} | {commands.group}
    assert set(re.findall(r"`(headcount\.[a-z]+)`", page)) >= groups
    assert roles.group == "headcount.roles", "the folder is called head_roles"


@pytest.mark.slow
def test_a_package_is_installed_and_used_from_the_shell(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "plug_in", tmp_path / "source")
    pip = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, "-m", "pip", *pip, str(tmp_path / "source")], check=True)
    hc.save(zoo.build("gpt2"), tmp_path / "gpt2", tokenizer=word_tokenizer())
    (tmp_path / "texts.txt").write_text("".join(f"w{5 + number} w6 w7\n" for number in range(20)))
    data = ["--task", "language-modelling", "--data", str(tmp_path / "texts.txt")]

    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        paths = [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
        return subprocess.run(
            [sys.executable, "-m", "headcount", *arguments], env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    model, half = str(tmp_path / "gpt2"), tmp_path / "half"
    scored = shell("score", model, *data, "--method", "alphabet", "--json")
    assert scored.returncode == 0, scored.stderr
    assert "alphabet" in scored.stdout
    pruned = shell("prune", model, *data, "--choose", "first-heads", "--keep", "50%", "--out", str(half), "--json")
    assert pruned.returncode == 0, pruned.stderr
    arguments = json.loads(pruned.stdout)["signature"]["arguments"]
    assert arguments["choose"] == "first-heads"
    exported = shell("export", str(half), "--to", "listing", "--out", str(tmp_path / "heads.txt"))
    assert exported.returncode == 0, exported.stderr
    kept = (tmp_path / "heads.txt").read_text().split()
    assert kept == [str(head) for head in hc.locate(hc.load(model)).heads[: len(kept)]]
    choice = ["--choose", "first-heads", "--keep", "50%", "--rule", "uniform"]
    shaped = shell("prune", model, *data, *choice, "--out", str(tmp_path / "uniform"))
    assert shaped.returncode == 2, "a chooser that does not keep to the shape is found out"
    assert "do not fit the shape" in " ".join(shaped.stderr.split())
    assert "listing" in shell("inspect", model).stdout
