"""head_mask: the old argument's shapes and meaning."""

from __future__ import annotations

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from behaviour import identical, outputs
from headcount.errors import MaskError


def test_transformers_ignores_the_argument_and_we_do_not(bert: nn.Module) -> None:
    """The reason for this stand-in: if transformers takes the argument again, this test says so."""
    from headcount.sites.inputs import example_batch

    batch, off = example_batch(bert), torch.zeros(3, 4)
    with torch.no_grad():
        assert torch.equal(bert(**batch, head_mask=off).logits, bert(**batch).logits)
        with hc.head_mask(bert, off):
            assert not torch.equal(bert(**batch).logits, bert(**batch, head_mask=off).logits + 1)
            masked = bert(**batch).logits
    assert not torch.equal(masked, bert(**batch).logits)


@pytest.mark.parametrize("form", ["heads", "layers", "old five dimensions", "old get_head_mask"])
def test_shapes(bert: nn.Module, form: str) -> None:
    row = torch.tensor([1.0, 0.0, 1.0, 0.5])
    mask = {
        "heads": row,
        "layers": row.expand(3, 4),
        "old five dimensions": row.view(1, 1, 4, 1, 1).expand(3, 2, 4, 1, 1),
        "old get_head_mask": row.view(1, 1, 4, 1, 1).expand(3, 1, 4, 1, 1),
    }[form]
    with hc.masked(bert, row.repeat(3)):
        expected = outputs(bert)
    with hc.head_mask(bert, mask):
        assert identical(outputs(bert), expected)


def test_encoder_decoder_has_three(marian: nn.Module) -> None:
    sites = hc.locate(marian)
    off = torch.ones(3, 4)
    off[1, 2] = 0
    given = {"head_mask": "encoder", "decoder_head_mask": "decoder", "cross_attn_head_mask": "cross"}
    for argument, kind in given.items():
        with hc.masked(marian, sites.mask(off=f"{kind}.1.2")):
            expected = outputs(marian)
        with hc.head_mask(marian, **{argument: off}):
            assert identical(outputs(marian), expected)


@pytest.mark.parametrize(("config", "model"), [("BertConfig", "BertLMHeadModel"), ("GPT2Config", "GPT2LMHeadModel")])
def test_decoders_with_cross_attention_had_one_mask_for_both(config: str, model: str) -> None:
    """Layers of transformers 4.50.3 passed `head_mask` to their self-attention and to their cross-attention."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50}
    settings = getattr(tf, config)(**sizes, is_decoder=True, add_cross_attention=True, bos_token_id=1, eos_token_id=2)
    decoder, off = getattr(tf, model)(settings).eval(), torch.ones(2, 4)
    off[1, 2] = 0
    with hc.masked(decoder, hc.locate(decoder).mask(off=["decoder.1.2", "cross.1.2"])):
        both = outputs(decoder)
    with hc.masked(decoder, hc.locate(decoder).mask(off="decoder.1.2")):
        one = outputs(decoder)
    with hc.head_mask(decoder, off):
        assert identical(outputs(decoder), both)
    with hc.head_mask(decoder, decoder_head_mask=off, cross_attn_head_mask=torch.ones(4)):
        assert identical(outputs(decoder), one)
    assert not identical(both, one)


def test_one_mask_of_t5_was_that_of_both_stacks() -> None:
    """T5 of transformers 4 set `decoder_head_mask = head_mask` if only the latter was given and layers were as many."""
    t5, off = zoo.build("t5"), torch.ones(3, 4)
    off[1, 2] = 0
    with hc.masked(t5, hc.locate(t5).mask(off=["encoder.1.2", "decoder.1.2"])):
        both = outputs(t5)
    with hc.masked(t5, hc.locate(t5).mask(off="encoder.1.2")):
        one = outputs(t5)
    with hc.head_mask(t5, off):
        assert identical(outputs(t5), both)
    with hc.head_mask(t5, off, decoder_head_mask=torch.ones(3, 4)):
        assert identical(outputs(t5), one)
    assert not identical(both, one)


def test_one_mask_of_t5_is_the_encoders_if_the_decoder_has_other_layers() -> None:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 4, "vocab_size": 50, "decoder_start_token_id": 0}
    t5 = tf.T5ForConditionalGeneration(tf.T5Config(num_layers=2, num_decoder_layers=3, **sizes)).eval()
    off = torch.ones(2, 4)
    off[1, 2] = 0
    with hc.masked(t5, hc.locate(t5).mask(off="encoder.1.2")):
        expected = outputs(t5)
    with hc.head_mask(t5, off):
        assert identical(outputs(t5), expected)


def test_gradients_reach_the_mask(llama: nn.Module) -> None:
    mask = torch.ones(3, 4, requires_grad=True)
    with hc.head_mask(llama, mask):
        llama(input_ids=torch.tensor([[3, 4, 5]])).logits.tanh().sum().backward()
    assert mask.grad.abs().min() > 0


def test_pruned_models_keep_the_old_columns(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    small = hc.remove(bert, sites.mask(off=["encoder.0.0", "encoder.2.3"]))
    mask = torch.ones(3, 4)
    mask[0, 1] = 0
    with hc.head_mask(small, mask):
        found = outputs(small)
    with hc.masked(bert, sites.mask(off=["encoder.0.0", "encoder.2.3", "encoder.0.1"])):
        torch.testing.assert_close(found["logits"], outputs(bert)["logits"])


@pytest.mark.parametrize("shape", [(5,), (2, 4), (3, 5), (3, 2, 4), (3, 2, 4, 6, 6)])
def test_wrong_shapes(bert: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(MaskError, match=r"\[4\], \[3, 4\]"), hc.head_mask(bert, torch.ones(shape)):
        pass


def test_masks_for_stacks_that_are_not_there(bert: nn.Module) -> None:
    with pytest.raises(MaskError, match="no cross attention"), hc.head_mask(bert, cross_attn_head_mask=torch.ones(4)):
        pass
    gpt2 = zoo.build("gpt2")
    with (
        pytest.raises(MaskError, match="one stack"),
        hc.head_mask(gpt2, torch.ones(4), decoder_head_mask=torch.ones(4)),
    ):
        pass
    albert = zoo.build("albert")
    with pytest.raises(MaskError, match="One module serves all layers"), hc.head_mask(albert, torch.ones(3, 4)):
        pass
    with hc.head_mask(bert):  # nothing given, as in old scripts that pass None
        outputs(bert)
