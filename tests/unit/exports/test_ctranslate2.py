"""CTranslate2: translation models with short layers filled up compute what the pruned models compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headcount as hc
import zoo
from headcount.errors import NotExportable
from tokens import word_tokenizer

UNEVEN = ["encoder.1.*", "decoder.2.0", "cross.0.1"]
EVEN = ["encoder.*.1", "decoder.*.0", "cross.*.1"]


def tokenizer() -> Any:
    words = word_tokenizer(framed=True)
    words.unk_token = "w3"
    return words


@pytest.mark.parametrize("architecture", ["pegasus", "marian"])
@pytest.mark.parametrize(
    ("off", "note"),
    [
        (UNEVEN, "36 heads are computed in place of 30, +20%"),
        (EVEN, "nothing is filled up"),
    ],
)
def test_ctranslate2_computes_what_the_model_computes(
    architecture: str, off: list[str], note: str, tmp_path: Path
) -> None:
    model = zoo.build(architecture)
    small = hc.remove(model, hc.locate(model).mask(off=off), verify=False)
    done = hc.export(small, "ctranslate2", tmp_path / "half", tokenizer=tokenizer())
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4
    assert done.agreement.same_tokens == done.agreement.tokens > 0
    assert note in done.notes[0]


def test_weights_in_eight_bits_are_smaller(tmp_path: Path) -> None:
    model = zoo.build("pegasus")
    whole = hc.export(model, "ctranslate2", tmp_path / "whole", tokenizer=tokenizer(), check=False)
    small = hc.export(model, "ctranslate2", tmp_path / "small", tokenizer=tokenizer(), dtype="int8", check=False)
    assert small.size < 0.5 * whole.size


def test_other_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match="T5ForConditionalGeneration is not among Pegasus"):
        hc.export(zoo.build("t5"), "ctranslate2", tmp_path / "t5", tokenizer=tokenizer())
