"""What a decoder reads is what its own forward makes of the labels."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    PLBartConfig,
    PLBartForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    T5GemmaConfig,
    T5GemmaForConditionalGeneration,
    T5GemmaModuleConfig,
)

from headcount.errors import UsageError
from headcount.sites.decoder_input import decoder_input

LABELS = torch.tensor([[5, 6, 7, 2, 9], [8, 2, 9, -100, -100]])
BART = {
    "vocab_size": 20, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "pad_token_id": 1,
}  # fmt: skip
GEMMA = {
    "vocab_size": 20, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 4, "bos_token_id": 2, "pad_token_id": 0, "eos_token_id": 3,
}  # fmt: skip
T5 = {"vocab_size": 20, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "pad_token_id": 0}


def t5gemma() -> T5GemmaForConditionalGeneration:
    side = {"encoder": T5GemmaModuleConfig(**GEMMA), "decoder": T5GemmaModuleConfig(**GEMMA)}
    return T5GemmaForConditionalGeneration(T5GemmaConfig(**side, vocab_size=20, pad_token_id=0))


@pytest.mark.parametrize(
    "model",
    [
        BartForConditionalGeneration(BartConfig(**BART, decoder_start_token_id=2)),
        MBartForConditionalGeneration(MBartConfig(**BART)),
        PLBartForConditionalGeneration(PLBartConfig(**BART)),
        T5ForConditionalGeneration(T5Config(**T5, decoder_start_token_id=0)),
        t5gemma(),
    ],
    ids=lambda model: model.config.model_type,
)
def test_the_input_is_that_of_the_forward_of_the_model(model):
    read_BT = decoder_input(LABELS, model.config)
    given_BT = model.prepare_decoder_input_ids_from_labels(LABELS)
    real_BT = torch.cat([torch.ones(2, 1, dtype=torch.bool), LABELS[:, :-1] != -100], dim=1)
    assert torch.equal(read_BT[real_BT], given_BT[real_BT])
    assert (read_BT >= 0).all()


def test_a_decoder_without_a_start_token_is_refused():
    with pytest.raises(UsageError, match="decoder_start_token_id"):
        decoder_input(LABELS, T5Config(**T5))
