"""Examples keep what the model does: every head's weights on the tokens they belong to, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from transformers import BertConfig, BertForSequenceClassification

import laboratory
import zoo
from behaviour import hooks
from headcount.cli.main import main
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.tree import Tree
from headcount.errors import UsageError
from headcount.record import Record
from headcount.sites.fingerprint import weight_hash
from headcount.studies import examples as study
from headcount.studies.attention import attention_map
from headcount.studies.examples import examples
from tokens import word_tokenizer


def weights(example: dict[str, Any], head: str) -> np.ndarray:
    return np.array([[float(one) for one in row.split(" ")] for row in example.attention[head]])


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    tokenizer = laboratory.vocabulary(tmp_path_factory.mktemp("vocabulary"))
    return laboratory.model(tokenizer), tokenizer


def test_weights_are_those_of_the_model_itself(translator: tuple[Any, Any]) -> None:
    model, tokenizer = translator
    row = Grammar().split("test")[0]
    (example,) = examples(model, tokenizer, [row.tree], targets=[row.target], longest=99).parts.examples
    source = torch.tensor([tokenizer(row.tree.text)["input_ids"]])
    target = tokenizer(text_target=row.target)["input_ids"]
    start = model.config.decoder_start_token_id
    model.set_attn_implementation("eager")
    with torch.no_grad():
        read = torch.tensor([[start, *target[:-1]]])
        out = model.eval()(input_ids=source, decoder_input_ids=read, output_attentions=True)
    for kind, layers in (
        ("encoder", out.encoder_attentions), ("decoder", out.decoder_attentions), ("cross", out.cross_attentions),
    ):  # fmt: skip
        looking, looked_at = (example.tokens[side] for side in example.sides[kind])
        for layer, attention in enumerate(layers):
            for head in range(attention.shape[1]):
                found = weights(example, f"{kind}.{layer}.{head}")
                assert found.shape == (len(looking), len(looked_at))
                assert np.abs(found - attention[0, head].numpy()).max() <= 0.00051


@pytest.mark.parametrize("architecture", ["mbart", "plbart"])
@pytest.mark.parametrize("target", ["w7 w8 w9", None])
def test_a_decoder_without_a_start_token_reads_what_its_own_forward_reads(
    architecture: str, target: str | None
) -> None:
    """The last label in front, as with labels; of the output of the model, the token that generation puts there."""
    model: Any = zoo.without_start_token(architecture)
    tokenizer = word_tokenizer(framed=True)
    text = "w3 w4 w5"
    source = torch.tensor([tokenizer(text)["input_ids"]])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        if target is None:
            written = model.generate(source, num_beams=1, do_sample=False, max_new_tokens=2 * source.shape[1] + 10)
            reading = {"decoder_input_ids": written[:, :-1]}
        else:
            reading = {"labels": torch.tensor([tokenizer(text_target=target)["input_ids"]])}
        out = model(input_ids=source, **reading, output_attentions=True)
    (example,) = examples(model, tokenizer, [text], targets=[target], longest=99).parts.examples
    for kind, layers in (("decoder", out.decoder_attentions), ("cross", out.cross_attentions)):
        rows = attention_map(model, tokenizer, text, head=f"{kind}.1.2", target=target).parts.weights
        expected = layers[1][0, 2].numpy()
        assert np.abs(np.array(rows) - expected).max() <= 1e-5
        assert np.abs(weights(example, f"{kind}.1.2") - expected).max() <= 0.00051


def test_a_decoder_that_starts_with_no_token_is_refused_in_one_line() -> None:
    model: Any = zoo.build("t5")
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    for target, file in (("w7 w8", r"config\.json"), (None, r"generation_config\.json")):
        with pytest.raises(UsageError, match=rf"Set decoder_start_token_id in {file}"):
            attention_map(model, word_tokenizer(), "w3 w4", head="cross.0.0", target=target)


def test_trees_point_at_the_tokens_of_their_words(translator: tuple[Any, Any]) -> None:
    model, tokenizer = translator
    rows = Grammar().split("test")[:30]
    for example in examples(model, tokenizer, [row.tree for row in rows], count=3).parts.examples:
        tree, tokens = example.tree, example.tokens["source"]
        assert len(tokens) <= 20
        text = "".join(tokens[place] for word in tree.words for place in word)
        assert text == "".join(tokens[:-1]).replace(study.BLANK, "")  # all but blanks and the end of the sentence
        assert len(tree.words) == len(tree.parents) == len(tree.relations)
        assert tree.parents.count(-1) == 1


def test_texts_without_trees_and_models_without_a_decoder() -> None:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(vocab_size=99, **size))
    before = (weight_hash(model), hooks(model))
    record = examples(model, word_tokenizer(), ["w3 w4 w5", "w6 w7", "w8"], count=2, name="m")
    (first, _) = record.parts.examples
    assert first.tree is None
    assert first.sides == {"encoder": ("source", "source")}
    assert len(first.attention) == 8
    assert weights(first, "encoder.1.3").sum(1) == pytest.approx(1, abs=0.01)
    assert (weight_hash(model), hooks(model)) == before
    assert model.training
    assert Record.from_json(record.to_json()).parts == record.parts


def test_size_is_bounded(translator: tuple[Any, Any]) -> None:
    model, tokenizer = translator
    trees: list[Tree | str] = [row.tree for row in Grammar().split("test")[:20]]
    assert len(examples(model, tokenizer, trees, count=4, weights=1).parts.examples) == 1
    with pytest.raises(UsageError, match="tokens"):
        examples(model, tokenizer, trees, longest=2)
    with pytest.raises(UsageError, match="count must be at least 1"):
        examples(model, tokenizer, trees, count=0)


def test_the_command_writes_a_record_the_page_reads(translator: tuple[Any, Any], tmp_path: Path) -> None:
    from headcount.report.payload import payload
    from headcount.report.subject import subjects

    model, tokenizer = translator
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    arguments = ["study", "examples", str(tmp_path / "model"), "--data", "grammar", "--count", "2"]
    done = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    (subject,) = payload(subjects([Record.load(tmp_path / "out" / "record.json")]))["subjects"]
    assert len(subject["examples"]) == 2
    assert set(subject["examples"][0]["attention"]) == set(subject["heads"])


def test_sentences_of_one_token_are_not_too_long() -> None:
    classifier, tokenizer = small_classifier(), word_tokenizer()
    texts = ["w5", "w5 w6 w7 w8 w9", "w5 w6"]
    found = examples(classifier, tokenizer, texts, longest=4).parts
    assert (len(found.examples), found.too_long, found.too_short) == (1, 1, 1)


def test_attention_on_a_text_beyond_the_positions_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match=r"12 tokens, but BertForSequenceClassification has positions for 8.*shorter"):
        attention_map(small_classifier(), word_tokenizer(), " ".join(["w5"] * 12), head="encoder.0.0")


def small_classifier() -> BertForSequenceClassification:
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return BertForSequenceClassification(BertConfig(vocab_size=99, max_position_embeddings=8, **size))


def test_attention_that_does_not_run_on_texts_has_no_maps() -> None:
    parts = examples(zoo.idle_cross(), word_tokenizer(), ["w5 w6 w7 w8"]).parts
    assert {head.split(".")[0] for head in parts.examples[0].attention} == {"decoder"}
