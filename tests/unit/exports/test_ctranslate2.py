"""CTranslate2: translation models with short layers filled up compute what the pruned models compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

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


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_tokens_that_generation_rules_out_are_not_written(dtype: str, tmp_path: Path) -> None:
    """Marian models of the hub have a row of zeros for padding, whose logit 0 may be the largest, and a rule for it."""
    model: Any = zoo.build("marian")
    padding, words = model.config.pad_token_id, tokenizer()
    with torch.no_grad():
        model.model.shared.weight[padding] = 0
        model.final_logits_bias -= 10
        model.final_logits_bias[:, padding] = 0
    model.generation_config.bad_words_ids = [[padding]]
    done = hc.export(model, "ctranslate2", tmp_path / "whole", tokenizer=words, dtype=dtype)
    assert done.agreement is not None
    assert done.agreement.same_tokens == done.agreement.tokens > 0
    text = words("w4 w5 w6").input_ids
    ours = model.generate(torch.tensor([text]), max_new_tokens=8, num_beams=1)[0, 1:]
    translator = ctranslate2.Translator(str(done.path), compute_type="float32")
    answer = translator.translate_batch([words.convert_ids_to_tokens(text)], beam_size=1, max_decoding_length=8)
    assert answer[0].hypotheses[0] == words.convert_ids_to_tokens(ours)


def test_a_config_without_a_start_token_starts_as_generation_does(tmp_path: Path) -> None:
    model: Any = zoo.build("pegasus")
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    words = tokenizer()
    done = hc.export(model, "ctranslate2", tmp_path / "whole", tokenizer=words)
    assert done.agreement is not None
    assert done.agreement.same_tokens == done.agreement.tokens > 0
    text = words("w4 w5 w6").input_ids
    ours = model.generate(torch.tensor([text]), max_new_tokens=8, num_beams=1)[0, 1:]
    translator = ctranslate2.Translator(str(done.path), compute_type="float32")
    answer = translator.translate_batch([words.convert_ids_to_tokens(text)], beam_size=1, max_decoding_length=8)
    assert answer[0].hypotheses[0] == words.convert_ids_to_tokens(ours)


def test_weights_in_eight_bits_are_smaller(tmp_path: Path) -> None:
    model = zoo.build("pegasus")
    whole = hc.export(model, "ctranslate2", tmp_path / "whole", tokenizer=tokenizer(), check=False)
    small = hc.export(model, "ctranslate2", tmp_path / "small", tokenizer=tokenizer(), dtype="int8", check=False)
    assert small.size < 0.5 * whole.size


def test_other_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match="T5ForConditionalGeneration is not among Pegasus"):
        hc.export(zoo.build("t5"), "ctranslate2", tmp_path / "t5", tokenizer=tokenizer())
