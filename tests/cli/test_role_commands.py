"""Roles and attention from the command line, with wrong input too."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import laboratory
import zoo
from headcount.cli.main import main
from headcount.record.results.score import Scoring
from planted import tokenizer

BANK = """# text = The dog chased a small cat.
1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tchased\t_\tVERB\t_\t_\t0\troot\t_\t_
4\ta\t_\tDET\t_\t_\t6\tdet\t_\t_
5\tsmall\t_\tADJ\t_\t_\t6\tamod\t_\t_
6\tcat\t_\tNOUN\t_\t_\t3\tobj\t_\tSpaceAfter=No
7\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_

1\tbroken\t_\tNOUN\t_\t_\t9\troot\t_\t_

"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "marian"
    marks = laboratory.vocabulary(tmp_path_factory.mktemp("v") / "v")
    model = laboratory.model(marks)
    model.config.architectures = [type(model).__name__]
    hc.save(model, folder)
    marks.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "bert"
    hc.save(zoo.build("bert", "eager"), folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def test_a_folder_of_plain_text(encoder: str, tmp_path: Path) -> None:
    for split, text in {"train": "a dog\na cat\n", "dev": "The dog chased a small cat.\n"}.items():
        (tmp_path / f"{split}.txt").write_text(text)
    done = run("roles", encoder, "--data", str(tmp_path))
    assert done.exit_code == 0, done.output
    (tmp_path / "bank.conllu").write_text(BANK)
    done = run("roles", encoder, "--data", str(tmp_path))
    assert "is a folder of treebanks: give one of its files" in " ".join(done.output.split())


def test_roles_of_a_translation_model(translator: str, tmp_path: Path) -> None:
    out = tmp_path / "r"
    done = run(
        "roles", translator, "--data", "grammar:light:dialogue", "--limit", "20", "--frequencies", "corpus",
        "--common", "20", "--play", "--out", str(out), "--format", "png", "--all",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    for said in (
        "encoder.0.0",
        "cross.1.3",
        "nsubj v->s",
        "Next: headcount attention",
        "20 of them with",
    ):
        assert said in done.output
    assert "syntactic amod n->a: not enough trials" in " ".join(done.output.split())
    record = hc.Record.load(out / "record.json")
    assert record.study == "roles"
    assert set(record.parts.persons) == {"1", "2", "3"}
    assert len(record.parts.syntax) == 8
    assert record.parts.paper.num_heads == 8
    assert (out / "figures" / "head-roles.png").is_file()
    assert (out / "figures" / "relative-positions.png").is_file()
    score = hc.Record("score", record.signature, Scoring("relevance", dict.fromkeys(record.parts.confidence, 0.5), {}))
    score.save(tmp_path / "s" / "record.json")
    again = run(
        "roles", translator, "--data", "grammar:light:dialogue", "--limit", "20", "--relevance", str(tmp_path / "s"),
        "--encoder-only", "--frequencies", "tokenizer", "--json",
    )  # fmt: skip
    assert again.exit_code == 0, again.output
    assert '"relevance"' in again.output


def test_roles_of_a_treebank(encoder: str, tmp_path: Path) -> None:
    (tmp_path / "bank.conllu").write_text(BANK)
    base = ("roles", encoder, "--data", str(tmp_path / "bank.conllu"))
    done = run(*base, "--relations", "nsubj,obj", "--margin", "points", "--directions", "head->dependent")
    assert done.exit_code == 0, done.output
    assert "Left out: 1 (head out of range)" in done.output
    assert "obj v->o" in done.output
    assert done.output.count("obj o->v") == 1  # the number of the paper alone
    wrong = run(*base, "--relations", "nsubbj")
    assert wrong.exit_code == 2
    assert "nsubj" in wrong.output
    missing = run("roles", encoder, "--data", str(tmp_path / "none.conllu"))
    assert missing.exit_code == 1
    assert "no treebank" in missing.output
    assert run(*base, "--roles", "positionl").exit_code == 2


def test_attention_of_one_head(translator: str, encoder: str, tmp_path: Path) -> None:
    done = run("attention", encoder, "--head", "encoder.1.2", "--text", "the dog saw a man", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "[CLS]" in done.output
    found = hc.Record.load(tmp_path / "record.json").parts
    assert found.queries == found.keys
    assert "".join(found.keys[1:-1]) == "thedogsawaman"
    assert all(abs(sum(row) - 1) < 1e-4 for row in found.weights)
    assert (tmp_path / "figures" / "attention.svg").is_file()
    for head in ("encoder.0.0", "decoder.1.2", "cross.0.1"):
        for target in ((), ("--target", "vo dulo")):
            done = run("attention", translator, "--head", head, "--text", "The dog sleeps.", *target)
            assert done.exit_code == 0, done.output
    assert run("attention", encoder, "--head", "encoder.9.0", "--text", "the dog").exit_code == 2
    assert run("attention", encoder, "--head", "encoder.0.0", "--text", " ").exit_code == 2


def test_the_map_is_of_the_head_asked_for(encoder: str, tmp_path: Path) -> None:
    import torch

    run("attention", encoder, "--head", "encoder.1.2", "--text", "the dog saw a man", "--out", str(tmp_path))
    found = torch.tensor(hc.Record.load(tmp_path / "record.json").parts.weights)
    model = hc.load(encoder)
    with torch.no_grad(), hc.tapped(model, "attention") as taps:
        model(input_ids=torch.tensor([tokenizer()("the dog saw a man")["input_ids"]]))
    torch.testing.assert_close(found, taps["encoder.1"][0, 2], atol=1e-5, rtol=0)
