"""Padding counts nowhere: a padded batch gives what its texts give one by one, however the batch says what is padding.

Shapes: B batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from torch import Tensor, nn

import headcount as hc
import zoo
from headcount.errors import UsageError

_BERT: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32,
    "max_position_embeddings": 64, "num_labels": 3,
}  # fmt: skip
_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_TEXT = ("input_ids", "attention_mask")
LENGTHS = (5, 11, 7)
Loss = Callable[[nn.Module, Mapping[str, Any]], Tensor]


def _scaled(model: nn.Module) -> nn.Module:
    """Large weights, so that every position has other attention."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.4)
    return model.eval()


def _texts() -> dict[str, Tensor]:
    """Texts that end in the end token, padded; the label of each."""
    torch.manual_seed(1)
    ids = torch.randint(5, 50, (3, 11))
    mask = (torch.arange(11) < torch.tensor(LENGTHS)[:, None]).long()
    ids = ids.scatter(1, mask.sum(1, keepdim=True) - 1, 2).where(mask.bool(), 1)
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([0, 1, 2])}


def _alone(batch: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    return [
        {
            name: value[row : row + 1, :length] if value.dim() > 1 else value[row : row + 1]
            for name, value in batch.items()
        }
        for row, length in enumerate(LENGTHS)
    ]


def _loss(model: nn.Module, batch: Mapping[str, Any]) -> Tensor:
    logits = model(**{name: value for name, value in batch.items() if name != "labels"}).logits
    return nn.functional.cross_entropy(logits, batch["labels"], reduction="none")


def _agree(model: nn.Module, some: list[Any], others: list[Any], loss: Loss = _loss, confidence: bool = True) -> None:
    """Means, token gradients and confidence of two sets of batches are the same."""
    first, second = (hc.mean_outputs(model, batches, run=loss) for batches in (some, others))
    for key in first:
        torch.testing.assert_close(first[key], second[key], rtol=1e-4, atol=1e-5)
    tasks = [hc.task.of(batches, nll=loss) for batches in (some, others)]
    options = [("gradient", {"granularity": "token", "normalize": False}), ("confidence", {})]
    for name, chosen in options[: 1 + confidence]:
        numbers = [hc.score(name, model, task, **chosen).numbers() for task in tasks]
        np.testing.assert_allclose(*numbers, rtol=1e-3, atol=1e-6, err_msg=name)


def _reads_twice(family: str) -> nn.Module:
    """A classifier that makes its decoder input of its source."""
    if family == "bart":
        sizes = {f"{side}_{name}": size for side in ("encoder", "decoder")
                 for name, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 32))}  # fmt: skip
        config: Any = tf.BartConfig(
            vocab_size=50,
            d_model=32,
            **sizes,
            **_IDS,
            num_labels=3,
            max_position_embeddings=64,
            decoder_start_token_id=2,
        )
        model: nn.Module = tf.BartForSequenceClassification(config)
    else:
        config = tf.T5Config(
            vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, **_IDS, num_labels=3,
            decoder_start_token_id=1,
        )  # fmt: skip
        model = tf.T5ForSequenceClassification(config)
    return _scaled(model)


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_a_classifier_that_reads_its_source_twice(family: str) -> None:
    """The decoder input is made inside the model; the labels are classes."""
    batch = _texts()
    _agree(_reads_twice(family), [batch], _alone(batch))


CLASSES = {
    "a column": torch.tensor([[0], [1], [2]]),
    "several classes": torch.tensor([[0, 1, 1], [1, 0, 0], [0, 0, 1]]),
}


@pytest.mark.parametrize("form", CLASSES)
@pytest.mark.parametrize("family", ["bart", "t5"])
def test_classes_in_columns_are_no_target_tokens(family: str, form: str) -> None:
    def loss(model: nn.Module, batch: Mapping[str, Any]) -> Tensor:
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        return logits.gather(1, batch["classes"][:, None])[:, 0].square()

    batch = _texts()
    batch["classes"] = batch.pop("labels")
    _agree(_reads_twice(family), [batch | {"labels": CLASSES[form]}], [batch], loss)


def test_a_prompt_that_is_not_predicted_is_read() -> None:
    """Its labels are -100, as those of padding; what stands before a token that is predicted is no padding."""
    config = tf.T5Config(
        vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, **_IDS, decoder_start_token_id=1
    )
    model, batch = _scaled(tf.T5ForConditionalGeneration(config)), _texts()
    target, real = batch["input_ids"], batch["attention_mask"].bool()
    labels = target.masked_fill(~real, -100)
    prompted = labels.masked_fill(torch.arange(11) < 3, -100)
    read = torch.cat([torch.ones(3, 1, dtype=torch.long), target[:, :-1]], dim=1)

    def loss(model: nn.Module, batch: Mapping[str, Any]) -> Tensor:
        logits = model(**{name: batch[name] for name in (*_TEXT, "decoder_input_ids")}).logits
        return nn.functional.cross_entropy(logits.transpose(1, 2), prompted[: len(logits)], reduction="none").sum(1)

    given, predicted = ({**batch, "decoder_input_ids": read, "labels": ids} for ids in (prompted, labels))
    _agree(model, [given], [predicted], loss, confidence=False)
    found, expected = (hc.score("confidence", model, hc.task.of([one], nll=loss)) for one in (given, predicted))
    for head in (head for head in expected if head.kind == "decoder"):
        assert found[head] == pytest.approx(expected[head], rel=1e-4)
    crossing = [head for head in expected if head.kind == "cross"]  # its queries are the tokens that are predicted
    assert any(found[head] != pytest.approx(expected[head], rel=1e-4) for head in crossing)


def test_multiple_choice() -> None:
    """Each choice is a row of the model; confidence adds the choices of an example."""
    model = _scaled(tf.BertForMultipleChoice(tf.BertConfig(**_BERT)))
    texts = _texts()
    single = [
        {name: value[:, None] if name != "labels" else value * 0 for name, value in batch.items()}
        for batch in _alone(texts)
    ]
    batch = {"input_ids": texts["input_ids"][None], "attention_mask": texts["attention_mask"][None]}
    batch = {name: value.reshape(1, 3, 11) for name, value in batch.items()} | {"labels": torch.tensor([0])}
    first, second = hc.mean_outputs(model, [batch], run=_loss), hc.mean_outputs(model, single, run=_loss)
    for key in first:
        torch.testing.assert_close(first[key], second[key], rtol=1e-4, atol=1e-5)
    scores = [hc.score("confidence", model, hc.task.of(batches, nll=_loss)) for batches in ([batch], single)]
    np.testing.assert_allclose(*(score.numbers() for score in scores), rtol=1e-3)


def _given(name: str, model: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    mask_BT = batch["attention_mask"]
    grid_BQK = mask_BT.bool()[:, None, None].expand(3, 1, 11, 11)
    if name == "embeddings":
        embeddings = model.get_input_embeddings()(batch["input_ids"]).detach()
        return {"inputs_embeds": embeddings, "attention_mask": mask_BT, "labels": batch["labels"]}
    other = {
        "values": mask_BT * torch.tensor([[1], [2], [3]]),
        "per query and key": torch.zeros(3, 1, 11, 11).masked_fill(~grid_BQK, torch.finfo(torch.float32).min),
        "per query and key, -1e9": torch.zeros(3, 1, 11, 11).masked_fill(~grid_BQK, -1e9),
        "per query and key, -10000": torch.zeros(3, 1, 11, 11).masked_fill(~grid_BQK, -10000.0),
    }
    return batch | {"attention_mask": other[name]}


@pytest.mark.parametrize(
    "name", ["embeddings", "values", "per query and key", "per query and key, -1e9", "per query and key, -10000"]
)
def test_masks_of_other_forms(name: str) -> None:
    model = _scaled(tf.BertForSequenceClassification(tf.BertConfig(**_BERT, pad_token_id=1)))
    batch = _texts()
    batch["input_ids"] = batch["input_ids"].where(batch["input_ids"] != 2, 9)  # embeddings do not name special tokens
    _agree(model, [_given(name, model, batch)], [batch])


def test_confidence_refuses_a_mask_that_eager_attention_misreads() -> None:
    model = _scaled(tf.BertForSequenceClassification(tf.BertConfig(**_BERT, pad_token_id=1)))
    batch = _texts()
    grid = batch["attention_mask"].bool()[:, None, None].expand(3, 1, 11, 11)
    with pytest.raises(UsageError, match=r"adds a mask of shape .* torch\.bool"):
        hc.score("confidence", model, hc.task.of([batch | {"attention_mask": grid}], nll=_loss))


def _next_tokens(model: nn.Module, batch: Mapping[str, Any]) -> Tensor:
    ids, real = batch["input_ids"], batch["attention_mask"][:, 1:]
    logits = model(**{name: value for name, value in batch.items() if name != "labels"}).logits[:, -ids.shape[1] : -1]
    return (nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none") * real).sum(1)


def test_a_source_as_long_as_the_text() -> None:
    """Keys of cross-attention are those of the states, not of the text."""
    config = tf.GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, add_cross_attention=True, **_IDS)
    model, batch = _scaled(tf.GPT2LMHeadModel(config)), _texts()
    states, seen = torch.randn(3, 12, 32), torch.ones(3, 12, dtype=torch.long)
    seen[:, 9:] = 0
    short, long = (
        batch | {"encoder_hidden_states": states[:, :size].contiguous(), "encoder_attention_mask": seen[:, :size]}
        for size in (11, 12)
    )
    _agree(model, [short], [long], _next_tokens)


def test_a_learned_prompt_before_the_text() -> None:
    peft = pytest.importorskip("peft")
    config = tf.LlamaConfig(**_BERT, **_IDS)
    settings = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model, batch = _scaled(peft.get_peft_model(tf.LlamaForCausalLM(config), settings)), _texts()
    _agree(model, [batch], _alone(batch), _next_tokens)


def test_the_padding_of_a_text_is_none_of_an_image() -> None:
    """The text has as many tokens as the image has positions, or one more."""
    model = zoo.build("clip")
    patches = model.config.vision_config
    length = (patches.image_size // patches.patch_size) ** 2 + 1
    torch.manual_seed(0)
    images = torch.randn(3, 3, patches.image_size, patches.image_size)
    means = []
    for size in (length, length + 1):
        mask = (torch.arange(size) < torch.tensor([[4], [5], [6]])).long()
        ids = torch.full((3, size), 7) * mask
        means.append(hc.mean_outputs(model, [{"input_ids": ids, "attention_mask": mask, "pixel_values": images}]))
    for key in means[0]:
        torch.testing.assert_close(means[0][key], means[1][key], rtol=1e-4, atol=1e-5)


def test_padding_that_cannot_be_placed_is_warned_of(bert: nn.Module) -> None:
    mask = torch.ones(2, 6, dtype=torch.long)
    mask[1, 4:] = 0
    batch = {"attention_mask": mask, "input_ids": torch.arange(5, 21).reshape(2, 8)}
    with pytest.warns(UserWarning, match="which of them are padding"):
        hc.mean_outputs(bert, [batch], run=lambda model, batch: model(input_ids=batch["input_ids"]))


def test_frames_of_speech_before_an_adapter() -> None:
    """An adapter shortens what follows the encoder; attention has as many frames as without it."""
    torch.manual_seed(0)
    config = tf.Wav2Vec2Config(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, vocab_size=32,
        conv_dim=(16, 16), conv_stride=(4, 4), conv_kernel=(8, 4), num_feat_extract_layers=2, add_adapter=True,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, num_adapter_layers=2, output_hidden_size=64,
        feat_extract_norm="layer", do_stable_layer_norm=True, initializer_range=0.3,
    )  # fmt: skip
    model = tf.Wav2Vec2Model(config).eval()
    sound, mask = torch.randn(2, 1200), torch.ones(2, 1200, dtype=torch.long)
    mask[1, 800:], sound[1, 800:] = 0, 0
    padded = [{"input_values": sound, "attention_mask": mask}]
    single = [
        {"input_values": sound[row : row + 1, :length], "attention_mask": mask[row : row + 1, :length]}
        for row, length in enumerate((1200, 800))
    ]
    first, second = (hc.mean_outputs(model, batches) for batches in (padded, single))
    for key in first:
        torch.testing.assert_close(first[key], second[key], rtol=1e-4, atol=1e-5)
