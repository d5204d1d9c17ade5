"""The examples that the heads of a pruned model were chosen on, in a file of its folder."""

from __future__ import annotations

import hashlib
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn

import headcount as hc
import records
import subjects
import zoo
from headcount.checkpoints.chosen_on import FILE, read_chosen_on, write_chosen_on
from headcount.cli.commands.bench import _chosen_on
from headcount.errors import CheckpointError
from headcount.pruning.choosers.given import Given
from headcount.report.measured import measured_line
from headcount.tasks.overlap import UNKNOWN, Examples, measured_on
from tokens import sentences, word_tokenizer

CHOSEN = Examples("dev", "data", ("one", "two", "three"))
BATCHES = Examples(None, "batches", None)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_chosen_on(tmp_path, [CHOSEN, BATCHES, CHOSEN])
    assert read_chosen_on(str(tmp_path)) == (CHOSEN, BATCHES)
    write_chosen_on(tmp_path, [])
    assert read_chosen_on(str(tmp_path)) == ()
    assert read_chosen_on("someone/model") == ()


def test_of_an_export_it_is_unknown_and_texts_do_not_count_as_held_out(tmp_path: Path) -> None:
    small = hc.remove(zoo.build("llama"), hc.locate(zoo.build("llama")).mask(off=["decoder.1.0"]), verify=False)
    hc.export(small, "vllm", tmp_path / "half", check=False)
    unknown = read_chosen_on(str(tmp_path / "half"))
    assert unknown == (Examples(None, "", None),)
    assert measured_on([*unknown, CHOSEN], Examples("test", "other", ("four",))).held_out is None


def test_of_a_pruned_model_that_was_saved_without_its_examples_it_is_unknown(tmp_path: Path) -> None:
    """`hc.save` gets the model alone: evaluate said nothing of it, and prune called texts held out that were not."""
    bert, texts = zoo.build("bert"), ["w3 w4", "w5 w6 w7", "w8", "w9 w3"]
    task = hc.task("classification", texts=texts, labels=[0, 1, 0, 1], tokenizer=word_tokenizer())
    first = hc.prune(bert, task, keep="50%", choose="gradient", measure_on=task)
    assert first.record.parts.measured_on.held_out is False
    hc.save(first.model, tmp_path / "half")
    hc.save(bert, tmp_path / "whole")
    assert read_chosen_on(str(tmp_path / "half")) == (UNKNOWN,)
    assert read_chosen_on(str(tmp_path / "whole")) == ()
    other = hc.task("classification", texts=["w6", "w7 w8"], labels=[0, 1], tokenizer=word_tokenizer())
    for model in (first.model, hc.load(tmp_path / "half")):
        again = hc.prune(model, other, keep="25%", choose="gradient", measure_on=task)
        assert again.record.parts.measured_on.held_out is None


def test_texts_that_were_certainly_seen_are_not_held_out_whatever_else_is_unknown() -> None:
    """`bench` of a model and its exports, of which nothing is known."""
    measured = measured_on([CHOSEN, UNKNOWN], Examples("test", "other", ("four", "two")))
    assert (measured.overlap, measured.held_out) == (1, False)


def test_of_very_many_examples_only_the_hash_of_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.checkpoints.chosen_on.MOST_HASHES", 2)
    write_chosen_on(tmp_path, [CHOSEN])
    assert read_chosen_on(str(tmp_path)) == (Examples("dev", "data", None),)


@pytest.mark.parametrize(
    "content",
    [
        "[]", "{", "{}", '{"examples": {}}', '{"examples": [1]}', '{"examples": [{"data": "a", "split": 1, "hashes": []}]}',
        '{"examples": [{"data": "a", "split": null, "hashes": [1]}]}', '{"examples": [{"data": "a", "split": null}]}',
    ],
)  # fmt: skip
def test_damaged_files_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(CheckpointError, match="chosen_on"):
        read_chosen_on(str(tmp_path))


def test_what_one_model_was_chosen_on_says_nothing_of_an_export_beside_it(tmp_path: Path) -> None:
    """`bench` called texts held out that the heads of an ONNX file beside another pruned model were chosen on."""
    write_chosen_on(tmp_path, [CHOSEN])
    assert _chosen_on({"whole": nn.Identity(), str(tmp_path): nn.Identity()}, None) == [CHOSEN]
    assert _chosen_on({str(tmp_path): nn.Identity(), "other.onnx": object()}, None) == [CHOSEN, UNKNOWN]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], Path]:
    """Puts a folder into the local cache of the hub, as the model org/half of a branch or tag."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    home = tmp_path / "hub" / "models--org--half"
    (home / "refs").mkdir(parents=True)

    def put(folder: Path, revision: str = "main") -> Path:
        commit = hashlib.sha1(revision.encode()).hexdigest()
        (home / "refs" / revision).write_text(commit)
        return Path(shutil.copytree(folder, home / "snapshots" / commit))

    return put


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A pruned model of which nothing is known."""
    bert = zoo.build("bert")
    mask = hc.locate(bert).mask(off=["encoder.1.0"])
    hc.save(hc.remove(bert, mask, verify=False), tmp_path / "half", tokenizer=word_tokenizer())
    return tmp_path / "half"


def test_a_model_of_the_hub_says_what_its_heads_were_chosen_on(half: Path, hub: Callable[..., Path]) -> None:
    """Of a hub id nothing was read: `evaluate` said nothing, and studies called texts held out that were not."""
    snapshot = hub(half)
    assert read_chosen_on("org/half") == (UNKNOWN,)
    write_chosen_on(snapshot, [CHOSEN])
    assert read_chosen_on("org/half") == read_chosen_on("org/half", snapshot.name) == (CHOSEN,)
    write_chosen_on(half, [BATCHES])
    hub(half, "v2")
    assert read_chosen_on("org/half", "v2") == (BATCHES,)
    assert _chosen_on({"org/half": nn.Identity()}, "v2") == [BATCHES]
    assert read_chosen_on("org/half", "v3") == ()


def test_an_unpruned_model_of_the_hub_was_chosen_on_nothing(tmp_path: Path, hub: Callable[..., Path]) -> None:
    hc.save(zoo.build("bert"), tmp_path / "whole")
    hub(tmp_path / "whole")
    assert read_chosen_on("org/half") == ()


def test_the_record_of_a_model_of_the_hub_says_that_it_was_chosen_on_data(
    half: Path, tmp_path: Path, hub: Callable[..., Path]
) -> None:
    task = hc.task("classification", texts=["w3 w4", "w5"], labels=[0, 1], tokenizer=word_tokenizer())
    record = hc.prune(zoo.build("bert"), task, keep="50%", choose="gradient").record
    record.save(half / "record.json")
    hub(half)
    assert read_chosen_on("org/half") == (Examples(None, record.signature.data, None),)


def test_the_hub_is_asked_only_of_models_that_were_loaded_from_it(
    half: Path, hub: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python the name of a model may be any words. Without a connection, a file that is not in the cache is none."""
    hub(half)
    addresses: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        addresses.append(arguments)
        raise OSError("this test has no network")

    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)  # between its six attempts
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for name in ("planted", "org/another", "words of mine", "a/b/c", str(half)):
        read_chosen_on(name)
    assert not addresses
    assert read_chosen_on("org/half") == (UNKNOWN,)
    assert addresses


def test_what_the_cache_lacks_is_asked_of_the_hub(
    half: Path, hub: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading a model brings its config and weights alone. The files are those of the commit that was loaded."""
    snapshot = hub(half)

    def download(model: str, *, revision: str, allow_patterns: list[str]) -> None:
        assert (model, revision, FILE in allow_patterns) == ("org/half", snapshot.name, True)
        write_chosen_on(snapshot, [CHOSEN])

    monkeypatch.setattr("headcount.checkpoints.chosen_on.snapshot_download", download)
    assert read_chosen_on("org/half") == (CHOSEN,)


@pytest.mark.parametrize("chooser", ["mask", "names"])
def test_of_heads_that_are_given_it_is_unknown_what_they_were_chosen_on(chooser: str, tmp_path: Path) -> None:
    """Scores on a text, a mask of them, `prune` measured on the text: "No text was used to choose heads"."""
    model, tokenizer = zoo.build("gpt2"), word_tokenizer()
    task = hc.task("language-modelling", texts=sentences(20), tokenizer=tokenizer)
    mask = hc.select(hc.score("ablation", model, task), hc.Budget(share=0.5))
    names = Given(keep=tuple(map(str, mask.kept)))
    pruned = hc.prune(model, choose=mask if chooser == "mask" else names, measure_on=task)
    assert pruned.record.parts.measured_on.held_out is None
    assert "is unknown" in measured_line(pruned.record)[0]
    write_chosen_on(tmp_path, pruned.chosen_on)
    assert read_chosen_on(str(tmp_path)) == (UNKNOWN,)


@pytest.mark.parametrize(("method", "pipeline"), [("given", "given"), ("given", "given/scratch"), ("random", "random")])
def test_heads_that_an_earlier_version_was_given_are_unknown(method: str, pipeline: str, tmp_path: Path) -> None:
    """Its list is empty, or has only what the model was calibrated or trained on, and its record says the same.

    The heads of a model from scratch are those of another one, whose examples are in the list.
    """
    record = records.changed(subjects.pruned({"encoder": 4}), method=method, pipeline=pipeline)
    texts = {"split": "test", "examples": 4, "chosen_on": [], "overlap": 0, "held_out": True}
    record = records.changed(record, measured_on=texts)
    record.save(tmp_path / "record.json")
    unknown = (UNKNOWN,) if pipeline == "given" else ()
    for examples in ((), (CHOSEN,)):
        write_chosen_on(tmp_path, examples)
        assert read_chosen_on(str(tmp_path)) == (*examples, *unknown)
    write_chosen_on(tmp_path, [UNKNOWN])  # by this version
    assert read_chosen_on(str(tmp_path)) == (UNKNOWN,)
    assert ("No text was used" in measured_line(record)[0]) is not bool(unknown)
    assert ("is unknown" in measured_line(record)[0]) is bool(unknown)


@pytest.mark.parametrize("score", ["magnitude", "random"])
def test_scores_that_read_no_text_choose_on_none(score: str) -> None:
    """ "Heads were chosen on 20 texts", and their hashes in chosen_on.json, though none was read for it."""
    model, tokenizer = zoo.build("gpt2"), word_tokenizer()
    task = hc.task("language-modelling", texts=sentences(20), tokenizer=tokenizer)
    pruned = hc.prune(model, task, choose=score, keep="50%", measure_on=task)
    assert (pruned.chosen_on, pruned.record.parts.measured_on.held_out) == ((), True)
    assert "No text was used" in measured_line(pruned.record)[0]
    assert hc.prune(model, task, choose="gradient", keep="50%", measure_on=task).chosen_on != ()
