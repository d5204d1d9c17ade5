"""Rotary positions that depend on the longest text of a batch: measured one by one, or warned of."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import headcount as hc
from headcount.sites.rotary import Scaling, forget_widest, scalings, widest_alike
from tokens import sentences, word_tokenizer

LIMIT = 12
_SIZES = {
    "vocab_size": 99, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.3,
}  # fmt: skip
_DYNAMIC = {"rope_type": "dynamic", "factor": 8.0}
_LONG = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [8.0] * 8}
_THETA = {"rope_theta": 10000.0}
SHORT = sentences(20, shortest=4, longest=11)
LONG = sentences(7, seed=1, shortest=13, longest=40)
TEXTS = [*SHORT[:5], *LONG[:2], *SHORT[5:11], *LONG[2:5], *SHORT[11:], *LONG[5:]]  # of both sides in batches of 4


def build(name: str) -> Any:
    torch.manual_seed(0)
    if name == "longrope":
        positions = {"max_position_embeddings": 96, "original_max_position_embeddings": LIMIT}
        model = tf.Phi3ForCausalLM(tf.Phi3Config(**_SIZES, **positions, rope_scaling=_LONG))
    elif name == "dynamic":
        model = tf.LlamaForCausalLM(tf.LlamaConfig(**_SIZES, max_position_embeddings=LIMIT, rope_scaling=_DYNAMIC))
    elif name == "masked dynamic":
        kinds = {"full_attention": {**_DYNAMIC, **_THETA}, "sliding_attention": {"rope_type": "default", **_THETA}}
        config = tf.ModernBertConfig(**_SIZES, max_position_embeddings=LIMIT, rope_parameters=kinds, cls_token_id=1)
        model = tf.ModernBertForMaskedLM(config)
    else:  # of each type of layers
        kinds = {
            "longrope by layer": {"full_attention": {**_LONG, **_THETA, "original_max_position_embeddings": LIMIT}},
            "dynamic by layer": {"full_attention": {**_DYNAMIC, **_THETA}},
        }[name] | {"sliding_attention": {"rope_type": "default", **_THETA}}
        limit = 96 if name.startswith("longrope") else LIMIT
        layers = ["full_attention", "sliding_attention"]
        model = tf.Gemma3ForCausalLM(
            tf.Gemma3TextConfig(
                **_SIZES, head_dim=16, query_pre_attn_scalar=16, max_position_embeddings=limit, layer_types=layers,
                rope_parameters=kinds,
            )
        )  # fmt: skip
    return model.eval()


MODELS = ("longrope", "dynamic", "longrope by layer", "dynamic by layer")
each_model = pytest.mark.parametrize("name", MODELS)


def one_by_one(name: str, texts: Sequence[str], most: int | None = None) -> list[float]:
    """The loss of each text, alone in a model that has run on nothing else."""
    tokenizer, losses = word_tokenizer(), []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"][:, :most]
        with torch.no_grad():
            scores = build(name)(ids, use_cache=False).logits[0].log_softmax(-1)
        losses.append(-sum(float(scores[place, ids[0, place + 1]]) for place in range(ids.shape[1] - 1)))
    return losses


def a_task(**options: Any) -> Any:
    return hc.task("language-modelling", **{"texts": TEXTS, "tokenizer": word_tokenizer(), "batch_size": 4, **options})


@each_model
def test_texts_one_at_a_time_are_a_loop_over_texts_whatever_ran_before(name: str) -> None:
    """A second measurement of the same model was another one: `dynamic` keeps the frequencies of the longest text."""
    model, expected = build(name), one_by_one(name, TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for texts, losses in ((TEXTS, expected), (TEXTS[::-1], expected[::-1]), (TEXTS, expected)):
            quality = a_task(texts=texts, batch_size=1).quality(model)
            np.testing.assert_allclose(quality.statistics[:, 0], losses, rtol=3e-6)


@each_model
def test_texts_up_to_the_limit_are_a_loop_over_texts_in_any_batch(name: str) -> None:
    model = build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quality = a_task(max_length=LIMIT).quality(model)
    np.testing.assert_allclose(quality.statistics[:, 0], one_by_one(name, TEXTS, LIMIT), rtol=3e-6)


@each_model
def test_texts_that_depend_on_a_longer_one_are_counted(name: str) -> None:
    """They were measured in silence, or the attention mask was blamed if they were in the first batch."""
    expected = np.array(one_by_one(name, TEXTS))
    for texts, losses in ((TEXTS, expected), (TEXTS[::-1], expected[::-1])):
        task, model = a_task(texts=texts), build(name)
        with pytest.warns(UserWarning, match="rotary positions") as caught:
            quality = task.quality(model)
        differ = int((~np.isclose(quality.statistics[:, 0], losses, rtol=3e-6)).sum())
        assert differ > 3
        (message,) = {str(warning.message) for warning in caught}
        assert f"more than {LIMIT} tokens: 7 texts are longer, and {differ} of 27 depend on a longer one" in message
        assert f"batch_size=1 (--batch-size 1), or with max_length={LIMIT}" in message


@each_model
def test_batches_of_one_side_are_not_warned_of(name: str) -> None:
    longs = sentences(4, shortest=20, longest=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a_task(texts=[*SHORT[:4], *longs]).quality(build(name))


@each_model
def test_a_model_that_ignores_its_attention_mask_is_blamed_all_the_same(name: str) -> None:
    class Blind(type(build(name))):  # type: ignore[misc]
        def forward(self, input_ids: Any, attention_mask: Any = None, **options: Any) -> Any:
            output = super().forward(input_ids, attention_mask, **options)
            output.logits = output.logits + input_ids.eq(0).sum(-1)[:, None, None] * torch.arange(99) * 0.1
            return output

    model = build(name)
    model.__class__ = Blind
    with pytest.warns(UserWarning, match="ignores its attention mask"):
        a_task(texts=[*LONG[:2], *SHORT[:2]]).quality(model)


def test_masked_tokens_and_embeddings_do_not_depend_on_what_ran_before() -> None:
    tokenizer, model = word_tokenizer(mask="w4"), build("masked dynamic")
    masked = hc.task("masked-language-modelling", texts=LONG, tokenizer=tokenizer, batch_size=1)
    embedding = hc.task("embedding", texts=LONG[::-1], tokenizer=tokenizer, batch_size=1, model=model)
    fresh = [float(masked.nll(build("masked dynamic"), batch).detach()) for batch in masked.batches()]
    for _ in range(2):
        np.testing.assert_allclose(masked.quality(model).statistics[:, 0], fresh, rtol=3e-6)
        assert embedding.quality(model).value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["dynamic", "dynamic by layer"])
def test_what_ran_before_is_forgotten_to_the_last_bit(name: str) -> None:
    model = build(name)
    before = copy.deepcopy(dict(model.named_buffers()))
    with torch.no_grad():
        model(torch.full((1, 3 * LIMIT), 5))
    assert any(not torch.equal(buffer, before[path]) for path, buffer in model.named_buffers())
    forget_widest(model)
    assert [path for path, _ in model.named_buffers()] == list(before)
    assert all(torch.equal(buffer, before[path]) for path, buffer in model.named_buffers())


@each_model
def test_widths_with_the_same_positions(name: str) -> None:
    """Against the cosines of the model itself."""
    model = build(name)
    assert scalings(model) == [Scaling(name.split()[0], LIMIT)]

    def cosines(width: int) -> torch.Tensor:
        rotary = build(name).model.rotary_emb
        types = ["full_attention"] if "layer" in name else []
        return rotary(torch.zeros(1), torch.arange(width)[None], *types)[0][:, :4]

    for length in (4, LIMIT - 1, LIMIT, LIMIT + 1, 20):
        for width in (20, 21, 30):
            alike = [each for each in range(length, width + 1) if torch.equal(cosines(each), cosines(length))]
            assert widest_alike(model, length, width) == max(alike)


def test_plain_positions_do_not_depend_on_the_batch(llama: Any) -> None:
    assert scalings(llama) == []
    assert widest_alike(llama, 3, 60) == 60
