"""Where model and data are local files, no command asks the network for anything."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from click.testing import CliRunner

import headcount as hc
import zoo
from headcount.cli.main import main
from tokens import sentences, word_tokenizer

SMALL = ("--limit", "12")


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Addresses that were asked for while all sockets are shut and the hub is not told to be offline."""
    addresses: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> None:
        addresses.append(arguments[-1] if isinstance(arguments[0], socket.socket) else arguments[0])
        raise OSError("this test has no network")

    for holder, name in (
        (socket.socket, "connect"), (socket.socket, "connect_ex"), (socket.socket, "sendto"),
        (socket, "getaddrinfo"), (socket, "create_connection"),
    ):  # fmt: skip
        monkeypatch.setattr(holder, name, refuse)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return addresses


def test_the_watch_sees_an_attempt(attempts: list[Any]) -> None:
    with pytest.raises(Exception, match="no network"):
        huggingface_hub.model_info("headcount/no-such-model")
    assert attempts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its tokenizer, and data."""
    path = tmp_path_factory.mktemp("local")
    hc.save(zoo.build("llama"), path / "model", tokenizer=word_tokenizer(framed=True))
    (path / "texts.txt").write_text("\n".join(sentences(30)) + "\n", encoding="utf-8")
    return path


def test_commands_on_local_files_leave_the_network_alone(folder: Path, attempts: list[Any]) -> None:
    model, data = str(folder / "model"), ("--task", "language-modelling", "--data", str(folder / "texts.txt"), *SMALL)
    runs = (
        ("inspect", model),
        ("evaluate", model, *data, "--out", str(folder / "quality")),
        ("score", model, "--method", "gradient", *data, "--out", str(folder / "score")),
        ("prune", model, "--choose", "gradient", "--keep", "50%", *data, "--out", str(folder / "half")),
        ("inspect", str(folder / "half")),
        ("explore", model, *SMALL, "--one-out", "6", "--out", str(folder / "explored")),
        ("report", str(folder / "score"), str(folder / "half"), "--out", str(folder / "report.html")),
    )
    for arguments in runs:
        done = CliRunner().invoke(main, list(arguments))
        assert done.exit_code == 0, (arguments, done.output)
        assert attempts == [], arguments
