"""headcount roles: what every head of a model does, with evidence."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import options

_DIRECTIONS = {"both": None, "head->dependent": ["head->dependent"], "dependent->head": ["dependent->head"]}


@click.command("roles")
@options.loading
@click.option(
    "--data",
    required=True,
    help="grammar[:LANGUAGE[:DOMAIN]], a treebank (.conllu), parallel text, or a text file with a sentence per line.",
)
@click.option("--split", default="dev", show_default=True, help="Part of the grammar or of parallel text.")
@click.option("--languages", help="Endings of the files of parallel text: SOURCE,TARGET.")
@click.option("--parser", help="Parse plain text with spacy[:MODEL] or stanza[:LANGUAGE], where installed.")
@click.option("--limit", type=click.IntRange(1), help="Use so many sentences at most.")
@click.option("--encoder-only", is_flag=True, help="Leave the decoder of a translation model out.")
@click.option("--roles", "names", help="Which roles to look for, separated by commas; all if not given.")
@click.option("--relations", help="Dependency relations, separated by commas: nsubj,obj,amod,advmod if not given.")
@click.option("--directions", default="both", show_default=True, type=click.Choice(list(_DIRECTIONS)))
@click.option(
    "--margin", default="relative", show_default=True, type=click.Choice(["relative", "points"]),
    help="How a syntactic head is above the best fixed offset: 1.1 x baseline, or baseline + .1.",
)  # fmt: skip
@click.option("--excess", default=0.10, show_default=True, type=click.FloatRange(0), help="The .1 of --margin.")
@click.option("--diagonal/--no-diagonal", default=True, show_default=True, help="May a token look at itself most?")
@click.option(
    "--edges", default="possible", show_default=True, type=click.Choice(["possible", "all"]),
    help="Positional: which queries count, those with a token at the offset, or all.",
)  # fmt: skip
@click.option(
    "--frequencies", default="train", show_default=True,
    help="Of tokens, for the rare role: train (of the grammar or of parallel text), corpus, tokenizer, or a file: "
    ".json or .tsv with counts, or text (.conllu or lines) to count.",
)  # fmt: skip
@click.option(
    "--common", type=click.IntRange(0),
    help="How many of the most frequent tokens are not rare; the paper's 500 of 32,000, scaled, if not given.",
)  # fmt: skip
@click.option("--relevance", type=click.Path(exists=True, path_type=Path), help="Record of the heads' relevance.")
@click.option("--resamples", default=1000, show_default=True, type=click.IntRange(10))
@click.option("--seed", default=0, show_default=True, type=int)
@options.output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    data: str,
    split: str,
    languages: str | None,
    parser: str | None,
    limit: int | None,
    encoder_only: bool,
    names: str | None,
    relations: str | None,
    directions: str,
    frequencies: str,
    relevance: Path | None,
    output: options.Output,
    as_json: bool,
    **reading: Any,
) -> None:
    """Find out what every head of MODEL does: positions, syntax, rare tokens and more, each against its baseline."""
    from dataclasses import replace

    from headcount.cli import show
    from headcount.corpora.sentences import read_sentences
    from headcount.studies.roles import look
    from headcount.studies.source import quiet

    with show.working(f"Reading {data}"):
        quiet()
        pair = _list(languages)
        sentences = read_sentences(data, split=split, languages=pair, parser=parser, limit=limit)
        sentences = replace(sentences, targets=None) if encoder_only else sentences
        tokenizer = how.tokenizer(model)
        known = _frequencies(frequencies, data, pair, tokenizer)
        before = options.read_records([relevance])[0] if relevance else None
    with show.working(f"Loading {model}"):
        live = how.load(model)
    asked: dict[str, Any] = {
        "roles": _list(names),
        "relations": _list(relations),
        "directions": _DIRECTIONS[directions],
    }
    reading |= {name: value for name, value in asked.items() if value is not None}
    with show.Bars() as bars:
        record = look(
            live, sentences, tokenizer, name=model, data=f"{data} {split}", frequencies=known, relevance=before,
            progress=lambda done, of: bars.show("sentences", done, of), **reading,
        )  # fmt: skip
    roles = record.parts.roles
    head = next((head for head, held in roles.items() if held), next(iter(roles)))
    output.present(record, as_json, f"headcount attention {shlex.quote(model)} --head {head} --text '...'")


def _list(text: str | None) -> list[str] | None:
    return [part.strip() for part in text.split(",") if part.strip()] if text else None


def _frequencies(asked: str, data: str, languages: list[str] | None, tokenizer: Any) -> Any:
    """Frequencies as asked for; none where the corpus itself is to be counted."""
    from headcount.corpora.frequencies import counted, of_tokenizer, read_frequencies
    from headcount.corpora.parallel import read_parallel

    if asked == "tokenizer":
        return of_tokenizer(tokenizer)
    if asked not in ("train", "corpus"):
        return read_frequencies(asked, tokenizer)
    parallel = data.split(":")[0] in ("grammar", "hf") or Path(data).is_dir()
    if asked == "corpus" or not parallel:
        return None
    splits = read_parallel(data, languages=languages).splits
    return counted(splits["train"]["source"], tokenizer, source=f"{data} train") if "train" in splits else None
