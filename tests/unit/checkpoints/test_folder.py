"""Folders before they are trusted: links, damaged and hostile JSON, absurd numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from click.testing import CliRunner
from torch import nn
from transformers import PreTrainedTokenizerBase
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

import headcount as hc
import zoo
from headcount.checkpoints.companions import class_names, copy_companions, load_tokenizer
from headcount.checkpoints.load import text_limit
from headcount.checkpoints.objective import objective
from headcount.cli.main import main
from headcount.errors import CheckpointError
from tokens import word_tokenizer

DAMAGED = {
    "cut off": '{"a": ',
    "no object": "[]",
    "endless integer": '{"a": ' + "9" * 5000 + "}",
    "deep": "[" * 100_000,
}


@pytest.fixture
def folder(bert: nn.Module, tmp_path: Path) -> Path:
    return hc.save(bert, tmp_path / "m", tokenizer=word_tokenizer())


def test_the_folder_of_an_adapter_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"is an adapter \(PEFT\), not a model.*merge_and_unload"):
        hc.load(tmp_path)


def test_a_folder_that_is_not_of_a_model_is_named_by_whatever_reads_it(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{}")
    uses = (hc.load, load_tokenizer, class_names, objective, lambda source: text_limit(source, task="classification"))
    for use in uses:
        with pytest.raises(CheckpointError, match=r"has no config\.json: it is not a checkpoint folder"):
            use(str(tmp_path))


def test_links_out_of_the_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "out").mkdir()
    (folder / "vocab.txt").symlink_to(tmp_path / "secret")
    for use in (hc.load, load_tokenizer, class_names, lambda source: copy_companions(source, tmp_path / "out")):
        with pytest.raises(CheckpointError, match=r"vocab.txt is a link to .*secret, outside the model's folder"):
            use(str(folder))
    assert not list((tmp_path / "out").iterdir())


def test_links_of_chat_templates_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "x.jinja").symlink_to(tmp_path / "secret")
    with pytest.raises(CheckpointError, match=r"x\.jinja is a link"):
        load_tokenizer(str(folder))


def test_links_inside_the_folder_and_to_the_folder_work(folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "words.json")
    (folder / "tokenizer.json").symlink_to("words.json")
    (folder / "data").symlink_to(tmp_path)  # a folder is not read
    (tmp_path / "link").symlink_to(folder)
    assert hc.load(tmp_path / "link")
    assert load_tokenizer(str(tmp_path / "link"))


@pytest.fixture
def sentence_model(folder: Path) -> Path:
    """The folder as sentence-transformers writes it."""
    modules = [{"idx": 0, "path": ""}, {"idx": 1, "path": "1_Pooling"}, {"idx": 2, "path": "2_Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    for name in ("sentence_bert_config.json", "config_sentence_transformers.json"):
        (folder / name).write_text('{"max_seq_length": 8}')
    for name in ("1_Pooling", "2_Dense", "3_unnamed"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text('{"word_embedding_dimension": 16}')
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"weights")
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"a pickle")
    return folder


def test_files_of_sentence_transformers_are_copied(sentence_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    prune = ["prune", str(sentence_model), "--remove", "encoder.0.1", "--out", str(out)]
    done = CliRunner().invoke(main, prune)
    assert done.exit_code == 0, done.output
    for name in (
        "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json",
        "2_Dense/config.json", "2_Dense/model.safetensors",
    ):  # fmt: skip
        assert (out / name).read_bytes() == (sentence_model / name).read_bytes()
    assert not (out / "3_unnamed").exists()
    assert not list(out.rglob("*.bin")), "no pickle"
    assert hc.load(out)


def test_modules_of_sentence_transformers_stay_in_the_folder(sentence_model: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config.json").write_text("secret")
    (tmp_path / "out").mkdir()
    (sentence_model / "2_Dense" / "model.safetensors").unlink()
    with pytest.warns(UserWarning, match="2_Dense .* are not safetensors"):
        copy_companions(str(sentence_model), tmp_path / "out")
    (sentence_model / "1_Pooling" / "config.json").unlink()
    (sentence_model / "1_Pooling").rmdir()
    (sentence_model / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="outside the model's folder"):
        copy_companions(str(sentence_model), tmp_path / "out")
    for modules in ('[{"path": "../elsewhere"}]', '[{"path": ".."}]', '[{"path": 3}]', '{"path": "1_Pooling"}', "["):
        (sentence_model / "modules.json").write_text(modules)
        with pytest.raises(CheckpointError, match=r"modules\.json"):
            copy_companions(str(sentence_model), tmp_path / "out")


def test_files_of_every_tokenizer_of_transformers_are_copied(folder: Path, tmp_path: Path) -> None:
    classes = [getattr(transformers, name, None) for name in set(TOKENIZER_MAPPING_NAMES.values()) if name]
    classes += [transformers.SpeechT5Tokenizer, transformers.MLukeTokenizer]
    tokenizers = [kind for kind in classes if isinstance(kind, type) and issubclass(kind, PreTrainedTokenizerBase)]
    names = {file for kind in tokenizers for file in kind.vocab_files_names.values()}
    assert {"dict.txt", "word_shape.json", "entity_vocab.json"} <= names
    for name in names - {path.name for path in folder.iterdir()}:
        (folder / name).write_text("{}")
    (tmp_path / "out").mkdir()
    assert names <= set(copy_companions(str(folder), tmp_path / "out"))


@pytest.mark.parametrize("local", [True, False])
def test_all_chat_templates_are_copied(
    local: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = word_tokenizer()
    templates = {"default": "{{ messages }}", "rag": "SOURCES {{ messages }}", "tool_use": "TOOLS {{ messages }}"}
    tokenizer.chat_template = templates
    tokenizer.save_pretrained(folder)
    out = tmp_path / "out"
    hc.save(zoo.build("bert"), out)
    if not local:
        home = tmp_path / "models--me--mine"
        (home / "refs").mkdir(parents=True)
        (home / "refs" / "main").write_text("0" * 40)
        shutil.copytree(folder, home / "snapshots" / ("0" * 40))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    copy_companions(str(folder) if local else "me/mine", out)
    assert load_tokenizer(str(out)).chat_template == templates


def test_links_of_the_hub_cache_work(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "models--me--mine"
    snapshot = home / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (home / "blobs").mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(home / "blobs" / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert hc.load(snapshot)
    (tmp_path / "out").mkdir()
    assert "tokenizer.json" in copy_companions(str(snapshot), tmp_path / "out")
    (home / "blobs" / "1").unlink()
    (home / "blobs" / "1").symlink_to("/etc/hostname")
    with pytest.raises(CheckpointError, match="outside the model's folder"):
        hc.load(snapshot)


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_damaged_settings_of_a_model_are_named(folder: Path, name: str, damage: str) -> None:
    """Without generation_config.json a model translates by other rules: a damaged one may not pass for none."""
    (folder / name).write_text(DAMAGED[damage])
    for use in (hc.load, load_tokenizer, class_names):
        with pytest.raises(CheckpointError, match=rf"/{name} is not"):
            use(str(folder))


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("name", ["tokenizer_config.json", "tokenizer.json"])
def test_damaged_settings_of_a_tokenizer_are_named(folder: Path, name: str, damage: str) -> None:
    (folder / name).write_text(DAMAGED[damage])
    with pytest.raises(CheckpointError, match=f"/{name} is not"):
        load_tokenizer(str(folder))


def test_json_that_is_read_but_too_deep_to_copy_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text('{"a": ' * 400 + "1" + "}" * 400)
    with pytest.raises(CheckpointError, match="nested deeper than 100 levels"):
        hc.load(folder)


@pytest.mark.parametrize("damage", [name for name in DAMAGED if name != "no object"])
def test_a_damaged_index_is_named(folder: Path, damage: str) -> None:
    (folder / "model.safetensors.index.json").write_text(DAMAGED[damage])
    with pytest.raises(CheckpointError, match=r"model.safetensors.index.json is not readable JSON"):
        hc.load(folder)


def test_a_name_of_a_file_too_long_for_any_system_is_refused(folder: Path) -> None:
    names = {"weight": "w" * 500 + ".safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    with pytest.raises(CheckpointError, match=r"points to 'www"):
        hc.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": True}, "architectures in .*config.json is True; expected a list"),
        ({"id2label": ["a"]}, "id2label in .*config.json is .*; expected a mapping"),
        (
            {"num_hidden_layers": 10**7},
            r"config.json declares 10,000,000 layers, but the weights in the same folder have 3",
        ),
        ({"num_hidden_layers": 1e300}, "the weights in the same folder have 3"),
        ({"text_config": {"n_layer": 10**12}}, "declares 1,000,000,000,000 layers"),
        ({"num_labels": 3 * 10**8, "id2label": None}, "declares 300,000,000 labels"),
    ],
)
def test_absurd_numbers_are_refused_before_anything_is_built(
    folder: Path, change: dict[str, object], message: str
) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=message):
        hc.load(folder)


def test_the_error_for_a_missing_tokenizer_is_one_line(tmp_path: Path) -> None:
    zoo.build("llama").save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="no tokenizer that can be loaded") as caught:
        load_tokenizer(str(tmp_path))
    assert "\n" not in str(caught.value)


class MeanBertForSequenceClassification(transformers.BertForSequenceClassification):
    """A class of the user's own, with the weights of a stock class."""


def test_a_class_of_the_user_is_not_loaded_as_a_stock_class_without_a_word(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=32, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    MeanBertForSequenceClassification(config).save_pretrained(tmp_path / "own")
    with pytest.warns(UserWarning, match="saved from the class MeanBertForSequenceClassification.*loaded as BertFor"):
        hc.load(tmp_path / "own", task="classification")
    saved = json.loads((tmp_path / "own" / "config.json").read_text())
    saved["auto_map"] = {"AutoModelForSequenceClassification": "code.MeanBertForSequenceClassification"}
    (tmp_path / "own" / "config.json").write_text(json.dumps(saved))
    with pytest.raises(CheckpointError, match="needs custom code"):
        hc.load(tmp_path / "own", task="classification")


_CODE = """
from transformers import BertConfig, BertForSequenceClassification


class OwnBertForSequenceClassification(BertForSequenceClassification):
    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        output = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        output.logits = output.logits + 7.0
        return output
"""


def test_a_pruned_model_with_code_of_its_own_is_loaded_by_that_code(tmp_path: Path) -> None:
    """It was loaded as the stock class, or with a mismatch of sizes."""
    folder = tmp_path / "own"
    config = transformers.BertConfig(
        vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    saved["architectures"] = ["OwnBertForSequenceClassification"]
    saved["auto_map"] = {"AutoModelForSequenceClassification": "own_code.OwnBertForSequenceClassification"}
    (folder / "config.json").write_text(json.dumps(saved))
    (folder / "own_code.py").write_text(_CODE)
    model = hc.load(folder, task="classification", trust_remote_code=True)
    small = hc.remove(model, hc.locate(model).mask(off=["encoder.0.1", "encoder.1.2", "encoder.1.3"]))
    hc.save(small, tmp_path / "small")
    ids = torch.tensor([[1, 2, 3, 4]])
    for task in ("classification", None):
        again = hc.load(tmp_path / "small", task=task, trust_remote_code=True)
        with torch.no_grad():
            torch.testing.assert_close(again(ids).logits, small(ids).logits, rtol=0, atol=0)
    with pytest.raises(CheckpointError, match="needs custom code"):
        hc.load(tmp_path / "small", task="classification")
    with pytest.raises(CheckpointError, match="cannot be exported standalone"):
        hc.save(small, tmp_path / "alone", standalone=True)
