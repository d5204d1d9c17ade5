"""Which texts a workload reads, and the same again on a command line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
import zoo
from headcount.checkpoints.loading import Loading
from headcount.corpora.source import Source
from headcount.errors import UsageError
from headcount.studies.workload import Workload
from tokens import sentences, word_tokenizer

LOADING = Loading()


def plain_text(file: Path, *, split: str = "dev", **options: Any) -> Workload:
    return Workload("language-modelling", Source(str(file), split), **options)


def test_a_task_is_said_again_as_it_was_asked_for() -> None:
    source = Source("my data/pairs", "dev", languages=("en", "de"), lowercase=True)
    expected = "--task translation --data 'my data/pairs' --languages en,de --lowercase --metric loss"
    assert Workload("translation", source, metric="loss").as_options() == expected
    labelled = Source("d", columns={"text": "sentence", "label": "its class"})
    expected = "--task classification --data d --text-column sentence --label 'its class'"
    assert Workload("classification", labelled).as_options() == expected


@pytest.mark.parametrize(("architecture", "longest"), [("gpt2", 64), ("llama", 70)])
def test_texts_are_cut_to_the_positions_of_the_model(architecture: str, longest: int, tmp_path: Path) -> None:
    """With a count of them, whether the limit is that of the model or --max-length."""
    hc.save(zoo.build(architecture), tmp_path / "model", tokenizer=word_tokenizer())
    (tmp_path / "texts.txt").write_text("\n".join([" ".join(["w5"] * 70), " ".join(["w6"] * 90), "w7 w8"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        task = plain_text(tmp_path / "texts.txt", max_length=70).build(str(tmp_path / "model"), LOADING)
    assert task.lengths[:, 0].tolist() == [longest, longest, 2]
    messages = [str(warning.message) for warning in caught if "were truncated" in str(warning.message)]
    reason = "the most that the model can read" if longest == 64 else "the value of --max-length"
    assert messages == [f"2 texts reach {longest} tokens, {reason}; longer ones were truncated."]
    assert task.quality(LOADING.load(str(tmp_path / "model"), task="language-modelling")).value > 1


def test_a_file_is_halved_by_its_texts(tmp_path: Path) -> None:
    """The halves have no text in common, also where they are limited differently and texts come twice."""
    hc.save(zoo.build("gpt2"), tmp_path / "model", tokenizer=word_tokenizer())
    texts = sentences(30, seed=5)
    (tmp_path / "texts.txt").write_text("\n".join([*texts, *texts]))
    chosen, measured = plain_text(tmp_path / "texts.txt").divide()
    tasks = [part.build(str(tmp_path / "model"), LOADING) for part in (chosen.with_limit(20), measured)]
    assert len(tasks[1]) < 60
    assert set(tasks[0].example_hashes).isdisjoint(tasks[1].example_hashes)
    assert tasks[1].split == "the other half of texts.txt"
    (tmp_path / "texts.txt").write_text("w5 w6\nw5 w6\n")
    with pytest.raises(UsageError, match=r"too few texts.*--measure-split"):
        [part.build(str(tmp_path / "model"), LOADING) for part in (chosen, measured)]


@pytest.mark.parametrize(
    ("splits", "split", "expected"),
    [
        (("train", "dev", "test"), "dev", "test"),
        (("train", "dev"), "dev", "the other half of dev"),
        (("dev", "test"), "test", "the other half of test"),
    ],
)
def test_what_is_measured_on_by_default(splits: tuple[str, ...], split: str, expected: str, tmp_path: Path) -> None:
    for name in splits:
        (tmp_path / f"{name}.txt").write_text("w5 w6\n")
    chosen, measured = plain_text(tmp_path, split=split).divide()
    assert measured.source.split_label == expected
    assert chosen.source.split_label == (split if expected == "test" else f"one half of {split}")
    named = plain_text(tmp_path, measure_split="train").divide()
    assert [part.source.split_label for part in named] == ["dev", "train"]
    half = plain_text(tmp_path, measure_split="half")
    assert [part.source.split_label for part in half.divide()] == ["one half of dev", "the other half of dev"]
    trained = half.divide(choose=half.on("train"))
    assert [part.source.split_label for part in trained] == ["train", "the other half of dev"]


def test_what_is_trained_on_is_not_what_is_measured(tmp_path: Path) -> None:
    """By default: test, where there is one; of a file, which has no parts, the half that is not trained on."""
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.txt").write_text("w5 w6\n")
    work = plain_text(tmp_path)
    train, measured = work.divide(choose=work.on("train").with_limit(3))
    assert [train.source.split_label, train.source.limit, measured.source.split_label] == ["train", 3, "test"]
    file = plain_text(tmp_path / "dev.txt")
    train, measured = file.divide(choose=file.on("train"))
    assert [train.source.split_label, measured.source.split_label] == [
        "one half of dev.txt",
        "the other half of dev.txt",
    ]
    chosen, measured = file.divide()
    assert chosen.on("train").source.half == 1, "what is trained on besides keeps to the half"
    assert chosen.on(data="elsewhere").source.half is None


def test_class_names_need_a_model_that_names_its_classes(tmp_path: Path) -> None:
    """Alphabetical numbers would be a guess, and another one for a split without one of the classes."""
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    names = {0: "neutral", 1: "good", 2: "bad"}
    for folder, naming in (("unnamed", {"num_labels": 3}), ("named", {"id2label": names})):
        model = BertForSequenceClassification(BertConfig(vocab_size=99, **size, **naming))
        hc.save(model, tmp_path / folder, tokenizer=word_tokenizer())
    for file, labels in (("names.tsv", "good bad"), ("numbers.tsv", "1 2")):
        rows = [f"{label}\tw{number} w9" for number, label in enumerate(labels.split(), start=4)]
        (tmp_path / file).write_text("\n".join(["label\ttext", *rows]) + "\n")

    def labels_of(model: str, file: str) -> list[int]:
        task = Workload("classification", Source(str(tmp_path / file))).build(str(tmp_path / model), LOADING)
        return next(iter(task.batches()))["labels"].tolist()

    assert labels_of("named", "names.tsv") == labels_of("named", "numbers.tsv") == [1, 2]
    assert labels_of("unnamed", "numbers.tsv") == [1, 2]
    with pytest.raises(UsageError, match=r"class names bad, good, but the model does not name its classes"):
        labels_of("unnamed", "names.tsv")
