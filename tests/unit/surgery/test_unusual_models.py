"""Models of unusual make: other heads, parts put together, odd configs: found, cut, verified, saved, loaded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
from behaviour import difference, observe
from headcount.errors import ModelError, VerificationError

BERT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 60}
BART = {
    "vocab_size": 60, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
}  # fmt: skip
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 60, "n_positions": 64}
T5 = {"vocab_size": 60, "d_model": 64, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 4}
LLAMA = {**BERT, "num_key_value_heads": 2, "max_position_embeddings": 64}


def encoder_decoder() -> nn.Module:
    config = tf.EncoderDecoderConfig.from_encoder_decoder_configs(tf.BertConfig(**BERT), tf.BertConfig(**BERT))
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return tf.EncoderDecoderModel(config)


def vision_encoder_decoder() -> nn.Module:
    vision = tf.ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4
    )
    config = tf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(vision, tf.GPT2Config(**GPT2))
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return tf.VisionEncoderDecoderModel(config)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "GPT-2 classifier without padding token": lambda: tf.GPT2ForSequenceClassification(tf.GPT2Config(**GPT2)),
    "Llama classifier": lambda: tf.LlamaForSequenceClassification(tf.LlamaConfig(**LLAMA, pad_token_id=0)),
    "BART classifier": lambda: tf.BartForSequenceClassification(tf.BartConfig(**BART)),
    "BART question answering": lambda: tf.BartForQuestionAnswering(tf.BartConfig(**BART)),
    "BART decoder alone": lambda: tf.BartForCausalLM(tf.BartConfig(**BART)),
    "T5 classifier": lambda: tf.T5ForSequenceClassification(
        tf.T5Config(**T5, eos_token_id=1, pad_token_id=0, decoder_start_token_id=0)
    ),
    "T5 encoder alone": lambda: tf.T5EncoderModel(tf.T5Config(**T5)),
    "BERT multiple choice": lambda: tf.BertForMultipleChoice(tf.BertConfig(**BERT)),
    "BERT as decoder": lambda: tf.BertLMHeadModel(tf.BertConfig(**BERT, is_decoder=True)),
    "GPT-2 with cross attention": lambda: tf.GPT2LMHeadModel(tf.GPT2Config(**GPT2, add_cross_attention=True)),
    "BERT to BERT": encoder_decoder,
    "ViT to GPT-2": vision_encoder_decoder,
    "Llama, one key/value head, wide heads, biases": lambda: tf.LlamaForCausalLM(
        tf.LlamaConfig(**{**LLAMA, "num_key_value_heads": 1}, head_dim=32, attention_bias=True)
    ),
    "CLIP text tower": lambda: tf.CLIPTextModel(tf.CLIPTextConfig(**BERT, max_position_embeddings=64, eos_token_id=5)),
}


def scaled(model: nn.Module) -> nn.Module:
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data.mul_(2.5)
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_cut_verified_saved_and_loaded(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = scaled(MODELS[name]())
    sites = hc.locate(model)
    mask = sites.mask(off=[head for head in sites.heads if (head.index + head.layer) % 3 == 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # every site that is cut must run, or verification is no evidence
        small = hc.remove(model, mask)
    assert hc.cost(small).flops < hc.cost(model).flops
    found = hc.load(hc.save(small, tmp_path / "m"))
    assert hc.locate(found).heads == mask.kept
    assert difference(observe(small), observe(found)) == 0.0
    with pytest.raises(VerificationError):
        hc.verify(model, small, mask.map(lambda value: 1 - value))


def test_a_part_pruned_on_its_own_is_saved_as_it_is(tmp_path: Path) -> None:
    whole = scaled(encoder_decoder())
    encoder = hc.locate(whole.encoder)
    hc.remove(whole.encoder, encoder.mask(off="encoder.0.1"), inplace=True)
    found = hc.load(hc.save(whole, tmp_path / "m"))
    assert hc.locate(found)["encoder.0"].heads == (0, 2, 3)
    assert difference(observe(whole), observe(found)) == 0.0


def test_a_pruned_body_gets_another_head(tmp_path: Path) -> None:
    body = scaled(tf.BertForMaskedLM(tf.BertConfig(**BERT)))
    hc.save(hc.remove(body, hc.locate(body).mask(off="encoder.1.*")), tmp_path / "m")
    found = hc.load(tmp_path / "m", task="classification", new_weights="head")
    assert type(found) is tf.BertForSequenceClassification
    assert hc.locate(found)["encoder.1"].heads == ()
    assert torch.equal(found.bert.encoder.layer[0].output.dense.weight, body.bert.encoder.layer[0].output.dense.weight)


def test_an_evenly_pruned_folder_opened_by_stock_code_keeps_the_numbers(tmp_path: Path) -> None:
    model = scaled(tf.LlamaForCausalLM(tf.LlamaConfig(**LLAMA, head_dim=16)))
    sites = hc.locate(model)
    hc.save(hc.remove(model, sites.mask(keep=["decoder.?.1", "decoder.?.3"])), tmp_path / "m")
    stock = tf.LlamaForCausalLM.from_pretrained(tmp_path / "m").eval()
    assert hc.locate(stock)[0].heads == (1, 3)
    further = hc.remove(stock, hc.locate(stock).mask(off="decoder.0.1"))
    assert hc.locate(hc.load(hc.save(further, tmp_path / "n")))[0].heads == (3,)


def test_a_class_of_ones_own(tmp_path: Path) -> None:
    class Mine(tf.BertForSequenceClassification):
        pass

    model = Mine(tf.BertConfig(**BERT))
    hc.save(hc.remove(model, hc.locate(model).mask(off="encoder.0.0")), tmp_path / "m")
    with pytest.raises(hc.HeadcountError, match="model_class="):
        hc.load(tmp_path / "m")
    assert type(hc.load(tmp_path / "m", model_class=Mine)) is Mine


def test_standalone_code_is_forgotten_by_a_plain_save(tmp_path: Path) -> None:
    model = scaled(tf.BertModel(tf.BertConfig(**BERT)))
    hc.save(hc.remove(model, hc.locate(model).mask(off="encoder.0.0")), tmp_path / "a", standalone=True)
    hc.save(hc.load(tmp_path / "a"), tmp_path / "b")
    text = (tmp_path / "b" / "config.json").read_text()
    assert "auto_map" not in text
    assert '"plan"' not in text


def test_sites_that_do_not_run_are_told() -> None:
    """Images are not made up for a model that writes: cutting its vision tower cannot be verified without a batch."""
    vision = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 32,
        "image_size": 8,
        "patch_size": 4,
    }
    config = tf.LlavaConfig(
        vision_config=tf.CLIPVisionConfig(**vision), text_config=tf.LlamaConfig(**LLAMA), image_token_index=59
    )
    model = tf.LlavaForConditionalGeneration(config).eval()
    sites = hc.locate(model)
    assert sites.kinds == ("encoder", "decoder")
    hc.remove(model, sites.mask(off="decoder.0.1"))
    with pytest.warns(UserWarning, match=r"Not verified: encoder\.0"):
        hc.remove(model, sites.mask(off="encoder.0.1"))


def test_a_batch_of_ones_own() -> None:
    model = scaled(tf.BertModel(tf.BertConfig(**BERT)))
    mask = hc.locate(model).mask(off="encoder.0.1")
    batch = {"inputs_embeds": torch.randn(2, 5, 64)}
    hc.remove(model, mask, batch=batch)
    assert hc.cost(model, batch=batch).flops > 0


def test_a_model_that_refuses_the_made_up_batch_says_so() -> None:
    class Fussy(tf.BertModel):
        def forward(self, input_ids: torch.Tensor, secret: int | None = None) -> object:
            if secret is None:
                raise RuntimeError("no secret given")
            return super().forward(input_ids)

    model = Fussy(tf.BertConfig(**BERT)).eval()
    mask = hc.locate(model).mask(off="encoder.0.1")
    with pytest.raises(ModelError, match=r"no secret given.*batch="):
        hc.remove(model, mask)
    assert hc.cost(model).flops is None
    hc.remove(model, mask, batch={"input_ids": torch.tensor([[3, 4]]), "secret": 7})


def test_generic_layouts_in_half_precision() -> None:
    torch.manual_seed(0)
    for dtype in (torch.bfloat16, torch.float16):
        model = scaled(tf.GraniteForCausalLM(tf.GraniteConfig(**LLAMA))).to(dtype)
        sites = hc.locate(model)
        hc.remove(model, sites.mask(off=["decoder.0.1", "decoder.1.0"]))


def test_modules_that_accelerate_moves_are_refused(bert: nn.Module) -> None:
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module

    add_hook_to_module(bert.bert.encoder.layer[0].attention.self.query, AlignDevicesHook())
    with pytest.raises(hc.HeadcountError, match="without device_map"):
        hc.remove(bert, hc.locate(bert).mask(off="encoder.0.1"))
