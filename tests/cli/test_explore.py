"""headcount explore on tiny models of every kind: nothing to give but the model, one page at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headcount as hc
import zoo
from headcount.corpora.grammar.corpus import Grammar
from headcount.record.results.combined import Combined
from headcount.report import html
from tokens import sentences, word_tokenizer

SMALL = ["--limit", "12", "--one-out", "6"]


def run(*arguments: str) -> Result:
    from headcount.cli.main import main

    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    for architecture in ("bert", "roberta", "xlm-roberta", "llama", "t5"):
        hc.save(zoo.build(architecture), folder / architecture, tokenizer=word_tokenizer(mask="w98", framed=True))
    return folder


def explored(model: Path, out: Path, *options: str) -> tuple[Result, Combined]:
    done = run("explore", str(model), *SMALL, "--out", str(out), *options)
    assert done.exit_code == 0, done.output
    return done, hc.Record.load(out / "record.json").parts


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for figures, which take most of the time: they have tests of their own."""
    monkeypatch.setattr(html, "_drawn", lambda *_: ('<svg viewBox="0 0 9 9" width="9"></svg>', "A picture."))


@pytest.mark.parametrize(
    ("architecture", "objective", "said"),
    [
        ("roberta", "masked-language-modelling", "masked language modelling"),
        ("llama", "language-modelling", "language modelling"),
        ("t5", "translation", "the targets are the model's own greedy translations"),
        ("xlm-roberta", "embedding", "is a base model: without an output head it predicts nothing"),
        ("bert", "embedding", "needs labelled texts: give them with --data"),
    ],
)
def test_every_kind_of_model(
    models: Path, tmp_path: Path, architecture: str, objective: str, said: str, request: pytest.FixtureRequest
) -> None:
    if architecture not in ("t5", "xlm-roberta"):  # figures of all kinds of heads, and of a model without gradients
        request.getfixturevalue("without_pictures")
    done, parts = explored(models / architecture, tmp_path / "out")
    records = parts.records
    assert records["setup"].parts.objective == objective
    assert said in " ".join(done.output.split())
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "What is importance here, and on which text?" in page
    assert "12 embedded English sentences with gold trees" in page
    assert "3000 other embedded English sentences" in page
    heads = len(hc.locate(hc.load(models / architecture)).heads)
    assert len(records["ablation"].parts.one_out) == heads
    assert len(records["roles"].parts.confidence) == heads
    assert records["ablation"].parts.metric == ("cosine distance" if objective == "embedding" else "loss")
    assert ("gradient" in parts.missing) == (objective == "embedding")
    if objective != "embedding":
        assert set(parts.records) == {"setup", "roles", "gradient", "ablation", "examples"}
    for part in records:
        assert (tmp_path / "out" / "parts" / f"{part}.json").is_file()


@pytest.mark.usefixtures("without_pictures")
def test_a_classifier_with_labelled_texts(models: Path, tmp_path: Path) -> None:
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(sentences(10)))
    (tmp_path / "texts.tsv").write_text(f"text\tlabel\n{rows}")
    _, parts = explored(models / "bert", tmp_path / "out", "--data", str(tmp_path / "texts.tsv"))
    assert parts.records["setup"].parts.objective == "classification"
    assert parts.records["ablation"].parts.metric == "accuracy"
    assert parts.records["roles"].parts.sentences == 10 + 12  # with the embedded trees, for syntax
    assert "10 sentences of" in parts.records["setup"].parts.counted_in


@pytest.mark.usefixtures("without_pictures")
def test_roles_of_pairs_are_of_their_first_texts_and_said_to_be(models: Path, tmp_path: Path) -> None:
    rows = "".join(f"{text}\t{text}\t{number % 2}\n" for number, text in enumerate(sentences(10)))
    (tmp_path / "pairs.tsv").write_text(f"text\tother\tlabel\n{rows}")
    _, parts = explored(models / "bert", tmp_path / "out", "--data", str(tmp_path / "pairs.tsv"), "--pair", "other")
    assert ", the first texts of pairs" in parts.records["setup"].parts.looked_at


@pytest.mark.usefixtures("without_pictures")
def test_heads_are_masked_on_no_more_labelled_texts_than_asked_for(models: Path, tmp_path: Path) -> None:
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(sentences(10)))
    (tmp_path / "texts.tsv").write_text(f"text\tlabel\n{rows}")
    limited = ["--data", str(tmp_path / "texts.tsv"), "--limit", "6", "--one-out", "0"]
    _, parts = explored(models / "bert", tmp_path / "out", *limited)
    assert parts.records["setup"].parts.one_out_on.startswith("6 texts of")
    assert {effect.examples for effect in parts.records["ablation"].parts.one_out.values()} == {6}


@pytest.mark.usefixtures("without_pictures")
def test_a_treebank_and_frequencies_of_ones_own(models: Path, tmp_path: Path) -> None:
    lines = []
    for row in Grammar().split("test")[:8]:
        tree = row.tree
        lines += [
            f"{place + 1}\t{word}\t_\tX\t_\t_\t{head + 1}\t{relation}\t_\t_"
            for place, (word, head, relation) in enumerate(zip(tree.words, tree.heads, tree.relations, strict=True))
        ]
        lines.append("")
    (tmp_path / "bank.conllu").write_text("\n".join(lines) + "\n")
    (tmp_path / "counts.tsv").write_text("w3\t10\nw4\t2\n")
    own = ["--data", str(tmp_path / "bank.conllu"), "--frequencies", str(tmp_path / "counts.tsv")]
    _, parts = explored(models / "roberta", tmp_path / "out", *own)
    setup = parts.records["setup"].parts
    assert setup.looked_at.startswith("8 sentences of")
    assert setup.counted_in == str(tmp_path / "counts.tsv")
    assert parts.records["roles"].parts.trees == 8


@pytest.mark.usefixtures("without_pictures")
def test_sentences_to_look_at_may_change(models: Path, tmp_path: Path) -> None:
    first = ["w5 w6 w7", "w8 w9"]
    _, parts = explored(models / "llama", tmp_path / "out", *(word for text in first for word in ("--text", text)))
    shown = [list(one.tokens["source"]) for one in parts.records["examples"].parts.examples]
    assert shown[:2] == [["<s>", "w5", "w6", "w7", "</s>"], ["<s>", "w8", "w9", "</s>"]]
    assert len(shown) == 4
    roles = tmp_path / "out" / "parts" / "roles.json"
    before = roles.stat().st_mtime_ns
    _, parts = explored(models / "llama", tmp_path / "out", "--text", "w20 w21")
    assert parts.records["examples"].parts.examples[0].tokens["source"] == ("<s>", "w20", "w21", "</s>")
    assert roles.stat().st_mtime_ns == before
    examples = roles.with_name("examples.json").read_bytes()
    refused = run("explore", str(models / "roberta"), *SMALL, "--out", str(tmp_path / "out"), "--text", "w30 w31")
    assert "begun with other settings" in refused.output
    assert roles.with_name("examples.json").read_bytes() == examples  # a command that is refused removes nothing


def test_an_interrupted_command_names_the_page(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headcount.studies import explore

    def interrupt(subject: object) -> hc.Record:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    asked = ["explore", str(models / "llama"), *SMALL, "--out", str(out)]
    monkeypatch.setattr(explore, "_MAKERS", {**explore._MAKERS, "setup": interrupt})
    assert run(*asked).output.splitlines()[-1] == "Error: Interrupted; no partly written files were left behind."
    monkeypatch.undo()
    monkeypatch.setattr(explore, "_MAKERS", {**explore._MAKERS, "roles": interrupt})
    done = run(*asked)
    assert done.exit_code == 1
    assert f"{out / 'report.html'} shows the parts measured so far; run the same command again" in done.output
    assert (out / "report.html").is_file()


def test_what_is_wrong_is_said(models: Path, tmp_path: Path) -> None:
    long = run("explore", str(models / "llama"), "--text", " ".join(["w5"] * 80), "--out", str(tmp_path / "out"))
    assert long.exit_code == 2
    assert "82 tokens" in long.output
    many = [word for number in range(13) for word in ("--text", f"w5 w{number + 6}")]
    assert "at most 12 times; got 13" in run("explore", str(models / "llama"), *many).output
    assert "There is no folder" in run("explore", "/no/such/model").output
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("changed", ["texts.txt", "counts.tsv"])
def test_a_page_is_not_kept_after_its_texts_changed(models: Path, tmp_path: Path, changed: str) -> None:
    """Also where only roles, or only token counts, read the text."""
    (tmp_path / "texts.txt").write_text("\n".join(sentences(150)) + "\n")
    (tmp_path / "counts.tsv").write_text("w5\t9\nw6\t3\n")
    given = ["--data", str(tmp_path / "texts.txt"), "--limit", "140", "--one-out", "6"]
    given += ["--frequencies", str(tmp_path / "counts.tsv")] if changed == "counts.tsv" else []
    asked = ["explore", str(models / "llama"), *given, "--out", str(tmp_path / "out")]
    assert run(*asked).exit_code == 0
    with (tmp_path / changed).open("a") as file:
        file.write("w7\t5\n" if changed == "counts.tsv" else "w7 w8 w9\n")
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "was begun with other settings" in " ".join(refused.output.split())


@pytest.mark.usefixtures("without_pictures")
def test_sentences_that_are_too_long_are_cut_with_a_warning_or_not_counted(models: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join([*sentences(6), " ".join(["w5"] * 300)]) + "\n")
    with pytest.warns(UserWarning, match=r"1 text reaches \d+ tokens, the most that .* reads?; longer ones"):
        _, parts = explored(models / "llama", tmp_path / "out", "--data", str(tmp_path / "texts.txt"), "--limit", "7")
    roles, looked_at = parts.records["roles"].parts, parts.records["setup"].parts.looked_at
    assert looked_at.startswith(f"6 sentences of {tmp_path / 'texts.txt'} (1 more were skipped), and 7 ")
    assert roles.sentences == 6 + 7
