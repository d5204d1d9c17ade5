"""Model cards, and uploading to a hub: one on this machine that writes down what it is sent."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
import records as made
import zoo
from headcount.checkpoints.card import write_card
from headcount.checkpoints.push import push
from headcount.errors import CheckpointError
from headcount.record import Signature

QUALITY = {"metric": "perplexity", "value": 15.0, "low": 14.0, "high": 16.0}
CUT = {"metric": "perplexity", "value": 17.5, "low": 16.5, "high": 18.5}
REMOVED = ["decoder.0.1", "decoder.2.3"]


def card(folder: Path, **parts: Any) -> str:
    """The card of a model whose record has these parts."""
    record = made.typed(
        "prune", Signature(), made.pruning(REMOVED, [f"decoder.1.{index}" for index in range(10)], **parts)
    )
    write_card(folder, record, source="someone/model")
    return (folder / "README.md").read_text()


def test_a_card_says_what_was_done_and_carries_the_licence_over(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "README.md").write_text("---\nlicense: apache-2.0\nbase_model: someone/first\n---\n# Base\n")
    parts = made.pruning(REMOVED, [f"decoder.1.{index}" for index in range(10)], before=QUALITY, after=CUT)
    parts["change"] = {"difference": 2.5, "low": 2.25, "high": 2.75, "p": 0.001}
    write_card(tmp_path, made.typed("prune", Signature(model=str(base)), parts), source=str(base))
    head, _, body = (tmp_path / "README.md").read_text().removeprefix("---\n").partition("\n---\n")
    assert "license: apache-2.0" in head
    assert "base_model: someone/first" in head
    assert "# base without 2 of its 12 attention heads" in body
    assert "| | perplexity | 95% interval |" in body
    assert "| whole model | 15 | 14 to 16 |\n| heads removed | 17.5 | 16.5 to 18.5 |\n| change, on the same" in body
    assert "| change, on the same examples | +2.5 | 2.25 to 2.75 |" in body
    assert "| parameters | 1,000 | 900 | -10.0% |" in body
    assert "`decoder.0.1`, `decoder.2.3`" in body
    assert str(tmp_path) not in head + body


def test_a_card_of_a_model_measured_on_one_text_has_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.checkpoints.card._base_card", lambda *_: {})
    nan = float("nan")
    assert "| whole model | 15 | none |" in card(tmp_path, before={**QUALITY, "low": nan, "high": nan})


def test_a_card_names_every_stage_and_gives_the_quality_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.checkpoints.card._base_card", lambda *_: {})
    tuning = {"trained": "all weights", "steps": 40, "seconds": 1.0, "epochs": [], "rate": 1e-3, "warmup": 2}
    fitted = {"method": "lstsq", "data": "", "rows": 9, "sites": {}, "quality": CUT}
    quality = {"before": QUALITY, "cut": CUT, "after": {**QUALITY, "value": 15.5}}
    tuned = card(tmp_path, method="greedy", compensation=fitted, training={"tuning": tuning}, quality=quality)
    assert "heads chosen by greedy, compensated for by lstsq, fine-tuned for 40 steps (all weights)." in tuned
    assert "| after lstsq | 17.5 | 16.5 to 18.5 |\n| after tuning | 15.5 | 14 to 16 |" in tuned
    assert "heads were chosen on" not in tuned
    scratch = {"quality": quality, "method": "fisher", "pipeline": "fisher/scratch"}
    assert "trained from new random weights for 40 steps (all weights)." in card(
        tmp_path, **scratch, training={"tuning": tuning}
    )
    gates = card(tmp_path, **{**scratch, "pipeline": "l0/scratch"}, training={"gates": tuning, "tuning": tuning})
    assert "trained with gates from new random weights for 40 steps (all weights), fine-tuned for 40 steps" in gates
    assert "| heads removed | 17.5 | 16.5 to 18.5 |\n| after tuning | 15.5" in gates, "weights that gates have trained"
    named = card(tmp_path, method="given", measured_on=None, metric=None)
    assert "heads chosen by hand." in named
    assert "## Quality" not in named
    same_texts = {**made.MEASURED_ON, "overlap": 20, "held_out": False}
    seen = card(tmp_path, before=QUALITY, after=CUT, measured_on=same_texts)
    assert ", which is optimistic: it was measured on the texts that heads were chosen on." in seen
    few = {**same_texts, "examples": 51, "overlap": 1}
    text = card(tmp_path, before=QUALITY, after=CUT, measured_on=few)
    assert "; heads were chosen on 1 of the 51 texts that it was measured on." in text
    assert "optimistic" not in text


class _Hub(BaseHTTPRequestHandler):
    """As much of the hub's protocol as an upload of small files needs."""

    sent: dict[str, bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        where = f"http://{self.headers['Host']}/user/small"
        if "/commit/" in self.path:
            for line in body.splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    self.sent[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
                elif entry["key"] == "deletedFile":
                    del self.sent[entry["value"]["path"]]
            self._answer({"commitUrl": f"{where}/commit/1", "commitOid": "1", "success": True})
        elif "/preupload/" in self.path:
            files = [{**one, "uploadMode": "regular", "shouldIgnore": False} for one in json.loads(body)["files"]]
            self._answer({"files": files})
        else:
            self._answer({"url": where, "name": "user/small"})

    def do_GET(self) -> None:
        if "/tree/" in self.path:
            self._answer([{"type": "file", "path": name, "size": 1, "oid": "0"} for name in self.sent])
        else:
            self._answer({"id": "user/small", "sha": "0", "siblings": []})

    def _answer(self, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[tuple[str, dict[str, bytes]]]:
    handler: Any = type("Hub", (_Hub,), {"sent": {}})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler.sent
    server.shutdown()
    server.server_close()


def test_a_folder_is_uploaded_without_what_training_left(
    hub: tuple[str, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # this hub is on this machine
    address, sent = hub
    hc.save(zoo.build("bert"), tmp_path / "small")
    (tmp_path / "small" / "training").mkdir()
    (tmp_path / "small" / "training" / "state.json").write_text("{}")
    assert push(tmp_path / "small", "user/small", endpoint=address).endswith("/commit/1")
    assert sent["config.json"] == (tmp_path / "small" / "config.json").read_bytes()
    assert "model.safetensors" in sent
    assert "training/state.json" not in sent


def test_weights_of_an_earlier_model_do_not_stay_on_the_hub(
    hub: tuple[str, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers loads model.safetensors if it is there, and not the index of the later model."""
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # this hub is on this machine
    address, sent = hub
    weights = {
        "one": {"model.safetensors"},
        "shards": {"model.safetensors.index.json", *(f"model-0000{shard}-of-00002.safetensors" for shard in (1, 2))},
        "export": {"openvino_model.xml"},
    }
    for folder, names in weights.items():
        (tmp_path / folder).mkdir()
        for name in ("config.json", *names):
            (tmp_path / folder / name).write_text("{}")
    sent |= {"notes.md": b"mine", "onnx/model.safetensors": b"mine"}
    others = {"notes.md", "onnx/model.safetensors", "config.json"}
    for folder in ("one", "shards", "one", "one"):
        push(tmp_path / folder, "user/small", endpoint=address)
        assert set(sent) == others | weights[folder]
    push(tmp_path / "export", "user/small", endpoint=address)
    assert set(sent) == others | weights["one"] | weights["export"], "an export beside a model replaces nothing"


def test_what_cannot_be_uploaded_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # nobody listens at the address below
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        push(tmp_path, "user/small")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is not a valid repository name"):
        push(tmp_path, "a/b/c")
    with pytest.raises(CheckpointError, match="was not uploaded to user/small"):
        push(tmp_path, "user/small", endpoint="http://127.0.0.1:9")


def test_a_card_names_the_model_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bert").mkdir()
    monkeypatch.chdir(tmp_path / "bert")
    parts = made.pruning(REMOVED, ["decoder.1.0"], before=QUALITY, after=CUT)
    write_card(tmp_path, made.typed("prune", Signature(model="."), parts), source=".")
    assert "# bert without 2 of its " in (tmp_path / "README.md").read_text()


def test_a_card_writes_a_large_perplexity_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.checkpoints.card._base_card", lambda *_: {})
    large = {**QUALITY, "value": 12345.6, "low": 9876.54, "high": 123456.7}
    change = {"difference": 12330.6, "low": 9861.54, "high": 123441.7, "p": 0.001}
    written = card(tmp_path, quality={"before": QUALITY, "cut": large, "after": None}, change=change)
    assert "| heads removed | 12346 | 9877 to 123457 |" in written
    assert "| change, on the same examples | +12331 | 9862 to 123442 |" in written
