"""Translation: losses against loops over single sentences, BLEU against sacrebleu, decoding against plain generate."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import torch
from transformers import (
    BertConfig,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    M2M100Config,
    M2M100ForConditionalGeneration,
    NllbTokenizer,
    RobertaConfig,
)

import headcount as hc
import laboratory
from headcount.corpora.ragged import Ragged
from headcount.errors import UsageError
from headcount.studies.evaluation import translate
from headcount.tasks.translation.bleu import bleu, bleu_statistics
from headcount.tasks.translation.decoding import by_length, decode


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return laboratory.vocabulary(tmp_path_factory.mktemp("vocabulary") / "v")


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return laboratory.model(tokenizer)


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str]]:
    dev = laboratory.parallel()["dev"]
    return list(dev["source"]), list(dev["target"])


def make(tokenizer: Any, texts: tuple[list[str], list[str]], **options: Any) -> Any:
    return hc.task("translation", source=texts[0], target=texts[1], tokenizer=tokenizer, **options)


@pytest.mark.parametrize("tokens", [1, 60, 4096])
def test_nll_is_a_loop_over_sentences(tokenizer: Any, model: Any, texts: Any, tokens: int) -> None:
    task = make(tokenizer, texts, tokens=tokens)
    with torch.no_grad():
        found = torch.cat([task.nll(model, batch) for batch in task.batches()])
    expected = []
    for source, target in zip(*texts, strict=True):
        ids = tokenizer(text_target=target)["input_ids"]
        batch = tokenizer([source], return_tensors="pt")
        before = torch.tensor([[model.config.decoder_start_token_id, *ids[:-1]]])
        with torch.no_grad():
            scores = model(**batch, decoder_input_ids=before).logits[0].log_softmax(-1)
        expected.append(-sum(float(scores[place, token]) for place, token in enumerate(ids)))
    torch.testing.assert_close(found.sort().values, torch.tensor(expected).sort().values, rtol=0, atol=1e-3)


def test_loss_is_smoothed_and_nll_is_not(tokenizer: Any, model: Any, texts: Any) -> None:
    plain, smooth = make(tokenizer, texts, smoothing=0.0), make(tokenizer, texts, smoothing=0.1)
    batch = next(plain.batches())
    tokens = int((batch["labels"] != -100).sum())
    with torch.no_grad():
        torch.testing.assert_close(plain.loss(model, batch), plain.nll(model, batch).sum() / tokens)
        logits = model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            decoder_input_ids=model.prepare_decoder_input_ids_from_labels(batch["labels"]),
        ).logits
        logs = logits.log_softmax(-1)
        real = batch["labels"] != -100
        of_target = logs.gather(-1, batch["labels"].clamp_min(0)[..., None])[..., 0]
        expected = -(0.9 * of_target + 0.1 * logs.mean(-1))[real].mean()
        torch.testing.assert_close(smooth.loss(model, batch), expected)
        torch.testing.assert_close(smooth.nll(model, batch), plain.nll(model, batch))
    assert smooth.targets(np.arange(len(smooth))) == sum(
        len(tokenizer(text_target=text)["input_ids"]) for text in texts[1]
    )


def test_batches_cover_every_sentence_once(tokenizer: Any, texts: Any) -> None:
    task = make(tokenizer, texts, tokens=60)
    sizes = [batch["input_ids"].shape for batch in task.batches()]
    assert sum(rows for rows, _ in sizes) == len(texts[0])
    assert all(rows * length <= 60 or rows == 1 for rows, length in sizes)
    lengths = [length for _, length in sizes]
    assert lengths == sorted(lengths, reverse=True)


def test_bleu_is_sacrebleus(texts: Any) -> None:
    draw = np.random.default_rng(0)
    _, references = texts
    for spoilt in (0.0, 0.2, 0.6, 0.95):
        written = [
            " ".join(word if draw.random() > spoilt else "x" for word in text.split()) or "x" for text in references
        ]
        statistics, signature = bleu_statistics(written, references)
        expected = sacrebleu.corpus_bleu(written, [references])
        assert float(bleu(statistics.sum(0))) == pytest.approx(expected.score, abs=1e-9)
        assert "tok:13a" in signature
        assert "eff:no" in signature


@pytest.mark.parametrize(
    ("references", "written", "words"),
    [
        (
            ["我昨天买了三本书。", "ok", "他每天早上去公园跑步。"],
            ["我昨天买三本书。", "ok", "他每天早上去公园。"],
            "zh",
        ),
        (["私は本を三冊買いました。", "ok"], ["私は三冊の本を買いました。", "ok"], "char"),
        (["ฉันไปโรงเรียนทุกวัน", "ok"], ["ฉันไปโรงเรียน", "ok"], "char"),
        (["The man sees 北京 today.", "ok"], ["The man saw 北京 today.", "ok"], "13a"),
    ],
)
def test_bleu_of_languages_without_spaces_counts_characters(
    tokenizer: Any, references: list[str], written: list[str], words: str
) -> None:
    """A sentence was one word, and BLEU nearly 0 unless it was repeated exactly."""
    task = make(tokenizer, (list("abc")[: len(references)], references))
    found = task.judge(written)
    assert found.value == pytest.approx(sacrebleu.corpus_bleu(written, [references], tokenize=words).score)
    assert f"tok:{words}|" in found.signature.arguments["metric"]
    some = task.statistics(np.array([1]), [tokenizer("ok")["input_ids"]])  # as of all sentences
    assert some[0, 1] == found.statistics[1, 1]


def test_bleu_of_many_sums_at_once(texts: Any) -> None:
    statistics, _ = bleu_statistics([text[:-3] for text in texts[1]], texts[1])
    halves = np.stack([statistics[:20].sum(0), statistics[20:].sum(0)])
    assert bleu(halves).tolist() == [float(bleu(half)) for half in halves]
    assert float(bleu(np.zeros(10))) == 0.0


def test_case_counts_unless_said_otherwise(tokenizer: Any, texts: Any) -> None:
    task, blind = make(tokenizer, texts), make(tokenizer, texts, lowercase=True)
    shouted = [text.upper() for text in texts[1]]
    assert blind.judge(shouted).value == pytest.approx(100.0)
    assert task.judge(shouted).value < 50
    assert "case:lc" in str(blind.judge(shouted).signature)


def test_capitals_that_the_tokenizer_cannot_write_are_warned_of(tmp_path: Path, texts: Any) -> None:
    folding = laboratory.vocabulary(tmp_path / "v", lowercase=True)
    cased = texts[0], [text.capitalize() for text in texts[1]]
    with pytest.warns(UserWarning, match="--lowercase"):
        make(folding, cased).judge(cased[1])
    keeping = laboratory.vocabulary(tmp_path / "k")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(folding, cased, lowercase=True).judge(cased[1])
        make(folding, (texts[0], [text.lower() for text in texts[1]])).judge(cased[1])
        make(keeping, texts).judge(texts[1])


@pytest.mark.parametrize("beams", [1, 3])
def test_decoding_is_that_of_generate(tokenizer: Any, model: Any, texts: Any, beams: int) -> None:
    """Sorting by length and batching change nothing."""
    texts = tuple(side[:10] for side in texts)
    task = make(tokenizer, texts, beams=beams, tokens=50 * beams)
    assert task.translations(model) == [_alone(model, tokenizer, text, beams) for text in texts[0]]


def _alone(model: Any, tokenizer: Any, text: str, beams: int) -> str:
    """The translation of a sentence in no batch, with its own limit."""
    inputs = tokenizer([text], return_tensors="pt")
    extra = {"length_penalty": 0.6} if beams > 1 else {}
    most = 2 * inputs["input_ids"].shape[1] + 10
    written = model.generate(**inputs, num_beams=beams, do_sample=False, max_length=None, max_new_tokens=most, **extra)
    return str(tokenizer.batch_decode(written, skip_special_tokens=True)[0])


@pytest.mark.parametrize("forced", [False, True])
def test_endless_beams_do_not_depend_on_the_batch(tokenizer: Any, texts: Any, forced: bool) -> None:
    """Beams ended at the limit of the longest sentence of their batch, and were cut afterwards."""
    torch.manual_seed(1)
    model = laboratory.model(tokenizer).eval()  # not trained: it never ends
    model.generation_config.forced_eos_token_id = tokenizer.eos_token_id if forced else None
    some = [side[:6] for side in texts]
    together = make(tokenizer, some, beams=3, tokens=4096)
    assert together.translations(model) == [_alone(model, tokenizer, text, 3) for text in some[0]]
    assert together.written(model) == make(tokenizer, some, beams=3, tokens=1).written(model)


def test_sentences_of_any_container_are_taken_by_position(tokenizer: Any, model: Any, texts: Any) -> None:
    """A shuffled table of pandas finds its rows by label: outputs would be compared with other references."""
    written = make(tokenizer, texts).translations(model)
    table = pd.DataFrame({"source": texts[0], "target": written}).sample(frac=1, random_state=0)
    columns = list(table["source"]), list(table["target"])
    rows = np.arange(5)
    expected = make(tokenizer, columns)
    outputs = expected.written(model, rows)
    for given in ((table["source"], table["target"]), (iter(columns[0]), iter(columns[1]))):
        task = make(tokenizer, given)
        assert task.fingerprint == expected.fingerprint
        assert task.example_hashes == expected.example_hashes
        np.testing.assert_array_equal(task.statistics(rows, outputs), expected.statistics(rows, outputs))


def test_references_that_differ_in_unknown_characters_are_other_data(tokenizer: Any, texts: Any) -> None:
    sources, targets = (list(side) for side in texts)
    first, second = (
        hc.task("translation", source=sources, target=[f"{targets[0]} {unknown}", *targets[1:]], tokenizer=tokenizer)
        for unknown in "\u20ac\u20bf"
    )
    assert [row.tolist() for row in first.target_ids] == [row.tolist() for row in second.target_ids]
    assert first.fingerprint != second.fingerprint


def test_quality_keeps_the_order_of_the_sentences(tokenizer: Any, model: Any, texts: Any) -> None:
    texts = tuple(side[:16] for side in texts)
    task = make(tokenizer, texts, tokens=40)
    quality = task.quality(model)
    one_by_one = bleu_statistics(task.translations(model), texts[1])[0]
    np.testing.assert_array_equal(quality.statistics, one_by_one)
    assert quality.name == "BLEU"


def test_held_out_measures(tokenizer: Any, model: Any, texts: Any) -> None:
    task = make(tokenizer, texts)
    with torch.no_grad():
        total = sum(float(task.nll(model, batch).sum()) for batch in task.batches())
    tokens = task.targets(np.arange(len(task)))
    assert task.held_out(model)["loss"] == pytest.approx(total / tokens, rel=1e-5)
    assert 0 <= task.held_out(model)["token_accuracy"] <= 1


def test_by_length_is_a_partition() -> None:
    lengths = np.array([3, 9, 1, 4, 4, 7])
    found = list(by_length(lengths, 8))
    assert sorted(np.concatenate(found).tolist()) == list(range(6))
    assert all(len(rows) * lengths[rows].max() <= 8 or len(rows) == 1 for rows in found)


def test_scores_take_translations(tokenizer: Any, model: Any, texts: Any) -> None:
    scores = hc.score("gradient", model, make(tokenizer, texts))
    assert {head.kind for head in scores} == {"encoder", "decoder", "cross"}


def test_wrong_input(tokenizer: Any, model: Any, texts: Any, bert: Any) -> None:
    with pytest.raises(UsageError, match="40 source and 39 target"):
        make(tokenizer, (texts[0], texts[1][:-1]))
    with pytest.raises(UsageError, match="empty"):
        make(tokenizer, ([], []))
    with pytest.raises(UsageError, match="encoder-decoder"):
        make(tokenizer, texts).held_out(bert)
    with pytest.raises(UsageError, match="max_length must be at least 2, because the tokenizer adds 1 special"):
        make(tokenizer, texts, max_length=1)
    with pytest.raises(UsageError, match="tokenizer must be the tokenizer of the model"):
        make(None, texts)
    with pytest.raises(UsageError, match="at least 1"):
        decode(model, make(tokenizer, texts).source_ids, padding=2, beams=0)


def test_sources_without_the_instruction_of_the_model_are_warned_of(
    tokenizer: Any, model: Any, texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T5 is told to translate, and Marian models of several languages into which, at the beginning of a sentence."""

    def warned(beginning: str = "") -> bool:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make(tokenizer, ([beginning + text for text in texts[0]], texts[1])).check(model)
        return any("no sentence begins so" in str(warning.message) for warning in caught)

    assert not warned()
    monkeypatch.setattr(tokenizer, "supported_language_codes", [">>fra<<"])
    assert not warned()
    monkeypatch.setattr(tokenizer, "supported_language_codes", [">>fra<<", ">>spa<<"])
    assert warned()
    assert not warned(">>spa<< ")
    tasks = {"summarization": {"num_beams": 4}, "translation_en_to_de": {"prefix": "translate English to German: "}}
    monkeypatch.setattr(model.config, "task_specific_params", tasks, raising=False)
    assert warned()
    assert not warned("translate English to German: ")


def test_hub_marian_tokenizers_work(tmp_path: Path) -> None:
    """One vocabulary for both sides, as the Marian models of the hub have it."""
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=True)
    dev = laboratory.parallel()["dev"]
    task = make(tokenizer, (list(dev["source"]), list(dev["target"])))
    assert task.held_out(laboratory.model(tokenizer))["loss"] > 0


@pytest.fixture
def many_languages() -> Callable[..., Any]:
    """A tokenizer that marks texts with their language, as that of NLLB does."""
    letters = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *"abcdefgh"]
    return lambda **languages: NllbTokenizer(
        vocab={letter: number for number, letter in enumerate(letters)}, merges=[], **languages
    )


def test_targets_are_marked_with_their_own_language(many_languages: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="src_lang is eng_Latn, but its tgt_lang is not set"):
        make(many_languages(), (["a b"], ["c d"]))
    tokenizer = many_languages(src_lang="eng_Latn", tgt_lang="deu_Latn")
    task = make(tokenizer, (["a b"], ["c d"]))
    assert [tokenizer.convert_ids_to_tokens(int(ids[0][0])) for ids in (task.source_ids, task.target_ids)] == [
        "eng_Latn",
        "deu_Latn",
    ]


def test_the_output_is_in_the_language_of_the_targets(many_languages: Callable[..., Any]) -> None:
    tokenizer = many_languages(src_lang="eng_Latn", tgt_lang="deu_Latn")
    sizes = dict.fromkeys(("encoder_layers", "decoder_layers"), 1) | dict.fromkeys(
        ("encoder_attention_heads", "decoder_attention_heads"), 2
    )
    model = M2M100ForConditionalGeneration(
        M2M100Config(vocab_size=len(tokenizer), d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8, **sizes)
    )
    task = make(tokenizer, (["a b"], ["c d"]))
    for write in (task.quality, task.written, lambda live: translate(live, tokenizer, ["a b"])):
        with pytest.raises(UsageError, match='Set "forced_bos_token_id": '):
            write(model)
    model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids("deu_Latn")
    assert tokenizer.convert_ids_to_tokens(task.written(model)[0][0]) == "deu_Latn"


def test_where_a_model_is_forced_to_end_does_not_depend_on_the_batch(tokenizer: Any, texts: Any) -> None:
    """Outputs without an end, as Marian and BART end them: at the limit of each sentence, whatever its batch."""
    torch.manual_seed(0)
    model = laboratory.model(tokenizer).eval()  # not trained: it never ends
    model.generation_config.forced_eos_token_id = tokenizer.eos_token_id
    some = [texts[0][:6], texts[1][:6]]
    one_by_one, together = make(tokenizer, some, tokens=1), make(tokenizer, some, tokens=4096)
    rows = np.arange(6)
    assert together.written(model) == one_by_one.written(model)
    drafts = together.drafted(model, rows, together.written(model))
    drafts.improve(model)
    drafts.finish(model)
    assert drafts.outputs == one_by_one.written(model)


@pytest.mark.parametrize("settings", [{"return_dict_in_generate": True}, {"num_return_sequences": 2, "num_beams": 4}])
def test_each_sentence_has_one_output_whatever_the_model_asks_for(
    settings: dict[str, Any], tokenizer: Any, texts: Any
) -> None:
    model = laboratory.model(tokenizer).eval()
    some = [texts[0][:4], texts[1][:4]]
    tasks = [make(tokenizer, some, beams=beams) for beams in (1, 4)]
    expected = [task.written(model) for task in tasks]
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    assert [task.written(model) for task in tasks] == expected
    drafts = tasks[0].drafted(model, np.arange(4), [[tokenizer.eos_token_id]] * 4)
    drafts.improve(model)
    drafts.finish(model)
    assert drafts.outputs == expected[0]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(("settings", "offset"), [(BertConfig, 0), (RobertaConfig, 2)])
def test_a_model_of_two_models_writes_as_many_tokens_as_its_decoder_has_positions(
    settings: Any, offset: int, beams: int, tokenizer: Any
) -> None:
    """Their number is in the config of its decoder; it wrote on, and torch raised an index error."""
    torch.manual_seed(0)
    size = {
        "vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "pad_token_id": 1,
    }  # fmt: skip
    encoder = settings(**size, max_position_embeddings=40 + offset)
    decoder = settings(**size, max_position_embeddings=24 + offset)
    both = EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = EncoderDecoderModel(both).eval()
    model.generation_config.decoder_start_token_id, model.generation_config.pad_token_id = 3, 1
    rows = Ragged.of([[5] * 30, [6, 7]])
    written = decode(model, rows, padding=1, beams=beams)  # it has no end token
    assert [len(ids) for ids in written] == [24, 15]


_RULES = {
    "encoder_repetition_penalty": 9.0,
    "exponential_decay_length_penalty": (1, 9.0),
    "sequence_bias": [[[5], 99.0]],
}


@pytest.mark.parametrize("rule", _RULES)
def test_drafts_are_not_used_where_a_rule_of_generation_changes_the_output(
    rule: str, tokenizer: Any, texts: Any
) -> None:
    torch.manual_seed(0)
    model = laboratory.model(tokenizer).eval()
    task = make(tokenizer, [texts[0][:4], texts[1][:4]])
    assert task.drafts(model)
    setattr(model.generation_config, rule, _RULES[rule])
    drafts = task.drafted(model, np.arange(4), task.written(model))
    while len(drafts.pending_P):
        drafts.improve(model)
    assert drafts.outputs != task.written(model)
    assert not task.drafts(model)
