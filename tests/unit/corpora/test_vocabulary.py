"""Vocabularies and ids: what transformers reads, what is memory-mapped, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MarianTokenizer

import headcount as hc
import laboratory
from headcount.corpora.encoded import encode, sides
from headcount.corpora.ragged import Ragged
from headcount.corpora.vocabulary import learn_vocabulary
from headcount.errors import CorpusError, UsageError


def test_each_side_has_its_own_pieces(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=False)
    pairs = laboratory.parallel()["train"]
    assert set(tokenizer.encoder) != set(tokenizer.target_encoder)
    assert max(len(tokenizer.encoder), len(tokenizer.target_encoder)) <= 300
    for source, target in zip(pairs["source"][:50], pairs["target"][:50], strict=True):
        assert tokenizer.decode(tokenizer(text_target=target)["input_ids"], skip_special_tokens=True) == target
        pieces = tokenizer.tokenize(source)
        assert "".join(pieces).replace("\u2581", " ").strip() == source


@pytest.mark.parametrize("shared", [False, True])
def test_every_id_occurs_in_the_text_or_is_a_character(tmp_path: Path, shared: bool) -> None:
    """BPE learns steps on the way to longer pieces. No text has them, so that their embeddings would stay random."""
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=shared)
    pairs = laboratory.parallel()["train"]
    source = {piece for text in pairs["source"] for piece in tokenizer.tokenize(text)}
    target = {piece for ids in tokenizer(text_target=list(pairs["target"]))["input_ids"]
              for piece in tokenizer.convert_ids_to_tokens(ids)} if shared else set()  # fmt: skip
    special = {"</s>", "<unk>", "<pad>"}
    assert {piece for piece in tokenizer.encoder if len(piece) > 1} - special <= source | target
    assert sorted(tokenizer.encoder.values()) == list(range(len(tokenizer.encoder)))
    assert tokenizer.unk_token_id not in {number for text in pairs["source"] for number in tokenizer(text)["input_ids"]}


def test_special_ids_are_the_same_on_both_sides(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=False)
    for piece in ("</s>", "<unk>", "<pad>"):
        assert tokenizer.encoder[piece] == tokenizer.target_encoder[piece]
    assert tokenizer("A dog.")["input_ids"][-1] == tokenizer(text_target="A")["input_ids"][-1] == tokenizer.eos_token_id


@pytest.mark.parametrize("shared", [False, True])
def test_plain_transformers_reads_model_and_tokenizer(tmp_path: Path, shared: bool) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=shared)
    model = laboratory.model(tokenizer, norm="pre" if shared else "post")
    hc.save(model, tmp_path / "model", tokenizer=tokenizer)
    again = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert isinstance(again, MarianTokenizer)
    sentence = laboratory.parallel()["dev"][0]
    batch = again([sentence["source"]], text_target=[sentence["target"]], return_tensors="pt")
    assert batch["input_ids"].tolist() == tokenizer([sentence["source"]], return_tensors="pt")["input_ids"].tolist()
    plain = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "model")
    written = plain.generate(**again([sentence["source"]], return_tensors="pt"), max_new_tokens=5)
    assert isinstance(again.batch_decode(written, skip_special_tokens=True)[0], str)
    assert (plain.get_input_embeddings().weight is plain.get_output_embeddings().weight) == shared


def test_case_is_folded_where_asked(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v", lowercase=True)
    assert tokenizer("THE DOG")["input_ids"] == tokenizer("the dog")["input_ids"]


def test_fewer_pieces_where_the_text_has_no_more(tmp_path: Path) -> None:
    tokenizer = learn_vocabulary(["a b c"], ["d e f"], tmp_path / "v", size=8000)
    assert len(tokenizer.encoder) < 20


def test_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be at least 8"):
        learn_vocabulary(["a"], ["b"], tmp_path / "v", size=3)
    with pytest.raises(CorpusError, match="training text is empty"):
        learn_vocabulary([" "], ["b"], tmp_path / "v")
    with pytest.raises(CorpusError, match="more different characters"):
        learn_vocabulary(["abcdefghijklmnopq"], ["b"], tmp_path / "v", size=10)
    assert not (tmp_path / "v").exists()


def test_ragged_rows() -> None:
    rows = [[1, 2, 3], [], [4], [5, 6]]
    ragged = Ragged.of(rows)
    assert [row.tolist() for row in ragged] == rows
    assert ragged.lengths.tolist() == [3, 0, 1, 2]
    assert ragged.padded([3, 0], -1).tolist() == [[5, 6, -1], [1, 2, 3]]
    assert ragged.mask([3, 0]).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert ragged.mask([]).shape == ragged.padded([], -1).shape
    assert len(Ragged.of([])) == 0


def test_ids_are_mapped_from_a_file_and_read_again(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v")
    pairs = laboratory.parallel()["train"]
    source, target = sides(encode(pairs, tokenizer, file=tmp_path / "ids.arrow"))
    expected = tokenizer(list(pairs["source"]))["input_ids"]
    assert [row.tolist() for row in source] == expected
    assert target[7].tolist() == tokenizer(text_target=pairs["target"][7])["input_ids"]
    assert not source[0].flags.owndata, "a view of the file, not a copy"
    changed = Dataset.from_dict({"source": ["never read"], "target": ["x"]})
    assert len(encode(changed, tokenizer, file=tmp_path / "ids.arrow")) == len(pairs)


def test_ids_of_several_chunks(tmp_path: Path) -> None:
    from datasets import concatenate_datasets

    one = Dataset.from_dict({"ids": [[1, 2], [3]]})
    other = Dataset.from_dict({"ids": [[4], [5, 6, 7]]})
    ragged = Ragged.of_column(concatenate_datasets([one, other]), "ids")
    assert [row.tolist() for row in ragged] == [[1, 2], [3], [4], [5, 6, 7]]
    sliced = Ragged.of_column(one.select(range(1, 2)), "ids")
    assert [row.tolist() for row in sliced] == [[3]]
    np.testing.assert_array_equal(ragged.lengths, [2, 1, 1, 3])


def test_vocabulary_files_are_json(tmp_path: Path) -> None:
    laboratory.vocabulary(tmp_path / "v", shared=False)
    names = {file.name for file in (tmp_path / "v").iterdir()}
    assert names == {"source.spm", "target.spm", "vocab.json", "target_vocab.json", "tokenizer_config.json"}
    assert json.loads((tmp_path / "v" / "vocab.json").read_text())["</s>"] == 0
