"""The notebooks on pretrained models run from top to bottom; here on tiny models in place of the hub's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
import zoo
from notebooks import FOLDER, cells, run
from tokens import byte_level_tokenizer, word_tokenizer

ENCODER, LANGUAGE_MODEL = FOLDER / "heads-of-an-encoder.ipynb", FOLDER / "prune-a-language-model.ipynb"


def _llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=320, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, pad_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def _run(notebook: Path, model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("HEADCOUNT_MODEL", str(model))
    monkeypatch.chdir(folder)
    space: dict[str, Any] = {}
    space["printed"] = "".join(shown.printed for shown in run(notebook, space))
    return space


def test_heads_of_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    hc.save(zoo.build("bert"), model, tokenizer=word_tokenizer(framed=True))
    space = _run(ENCODER, model, tmp_path, monkeypatch)
    assert set(space["roles"].heads) == set(space["importance"].heads) == set(space["sites"].heads)
    assert "mean importance" in space["printed"]


def test_prune_a_language_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    hc.save(_llama(), model, tokenizer=byte_level_tokenizer())
    space = _run(LANGUAGE_MODEL, model, tmp_path, monkeypatch)
    assert "2 of 12 heads removed" in space["printed"]
    assert (tmp_path / "smaller.gguf").is_file()
    assert space["export"].agreement is not None


@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_outputs_in_the_file_are_complete(notebook: Path) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    counts = [cell["execution_count"] for cell in content["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert len(cells(notebook, "markdown")) >= len(counts) - 1
    assert "Traceback" not in notebook.read_text(encoding="utf-8")
    assert "/tmp" not in notebook.read_text(encoding="utf-8")
