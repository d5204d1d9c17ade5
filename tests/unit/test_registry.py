"""Registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headcount as hc
import zoo
from headcount.errors import UnknownName, UsageError
from headcount.registry import Registry, plug_ins
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


@pytest.mark.slow
def test_a_package_is_installed_and_used_from_the_shell(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "plug_in"
    shutil.copytree(source, tmp_path / "source")
    pip = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, "-m", "pip", *pip, str(tmp_path / "source")], check=True)
    hc.save(zoo.build("gpt2"), tmp_path / "gpt2", tokenizer=word_tokenizer())
    (tmp_path / "texts.txt").write_text("w5 w6 w7\nw8 w9\n")
    given = ["--task", "language-modelling", "--data", str(tmp_path / "texts.txt"), "--method", "alphabet", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "headcount", "score", str(tmp_path / "gpt2"), *given],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "alphabet" in done.stdout
