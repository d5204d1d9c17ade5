"""headcount roles: what every head of a model does, with evidence."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headcount.cli import data, options

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_DIRECTIONS = {"both": None, "head->dependent": ["head->dependent"], "dependent->head": ["dependent->head"]}


@click.command("roles")
@options.loading
@data.source(data.SENTENCES, split="dev", fields=("languages", "limit"))
@click.option("--parser", help="Parse plain text with spacy[:MODEL] or stanza[:LANGUAGE], where installed.")
@click.option("--encoder-only", is_flag=True, help="Skip the decoder of a translation model.")
@click.option("--roles", "names", help="Roles to measure, separated by commas. Default: all.")
@click.option("--relations", help="Dependency relations, separated by commas. Default: nsubj,obj,amod,advmod.")
@options.choice(
    "--directions", list(_DIRECTIONS), "Directions of a dependency relation that syntactic heads are searched for.",
    "both",
)  # fmt: skip
@options.choice(
    "--margin",
    ["relative", "points"],
    "Whether a syntactic head must exceed its baseline by a factor (relative) or a difference (points); see --excess.",
    "relative",
)
@click.option(
    "--excess", default=0.10, show_default=True, type=options.Real(0),
    help="How far above its baseline a syntactic head must be: 0.1 is 10 % (relative) or 10 points (points).",
)  # fmt: skip
@options.toggle("--diagonal/--no-diagonal", "Count queries whose largest weight is on the token itself.")
@options.choice(
    "--edges", ["possible", "all"],
    "Queries that count for positional roles: those with a token at the offset (possible), or all.", "possible",
)  # fmt: skip
@click.option(
    "--frequencies", default="train", show_default=True,
    help="Token frequencies for the rare role: train (of the grammar or of parallel text), corpus, "
         "tokenizer, or a file: .json or .tsv with counts, or text (.conllu or lines) to count.",
)  # fmt: skip
@options.integer(
    "--common",
    "Number of most frequent tokens that are not rare. Default: the paper's 500 of 32,000, scaled to the vocabulary.",
    least=0,
)
@click.option(
    "--relevance",
    type=click.Path(exists=True, path_type=Path),
    help="Record of headcount score --method relevance, to compare with roles.",
)
@click.option("--play", is_flag=True, help="Also replace heads by their roles and measure the loss; takes longer.")
@options.integer("--resamples", "Bootstrap samples of sentences behind each interval.", 1000, least=10)
@options.seed("the resampling")
@options.output
def COMMAND(
    model: str,
    loading: options.Loading,
    source: data.Source,
    parser: str | None,
    encoder_only: bool,
    names: str | None,
    frequencies: str,
    relevance: Path | None,
    play: bool,
    output: options.Output,
    **reading: Any,
) -> None:
    """Measure what every head of MODEL does: positions, syntax, rare tokens and more, each against its baseline."""
    from dataclasses import replace

    from headcount.checkpoints.loading import quiet
    from headcount.cli import show
    from headcount.studies.playing import task_of
    from headcount.studies.roles import look

    with show.working(f"Reading {source.data}"):
        quiet()
        sentences = source.sentences(parser=parser)
        sentences = replace(sentences, targets=None) if encoder_only else sentences
        tokenizer = loading.tokenizer(model)
        token_frequencies = _frequencies(frequencies, source, tokenizer)
        before = options.read_records([relevance])[0] if relevance else None
    with show.working(f"Loading {model}"):
        live = loading.load(model)
        played_on = task_of(live, sentences, tokenizer) if play else None
    readings: dict[str, Any] = {
        "roles": options.names(names) or None,
        "relations": options.names(reading.pop("relations")) or None,
        "directions": _DIRECTIONS[reading.pop("directions")],
    }
    reading |= {name: value for name, value in readings.items() if value is not None}
    with show.Bars() as bars:
        record = look(
            live, sentences, tokenizer, name=model, data=source.data_and_split, frequencies=token_frequencies,
            relevance=before, play_on=played_on, progress=bars.show, **reading,
        )  # fmt: skip
    roles = record.parts.roles
    head = next((head for head, held in roles.items() if held), next(iter(roles)))
    output.present(record, f"headcount attention {shlex.quote(model)} --head {head} --text '...'")


def _frequencies(option: str, source: data.Source, tokenizer: PreTrainedTokenizerBase) -> Any:
    """Token frequencies from the option; None if they are counted in the corpus."""
    from headcount.corpora.frequencies import count_tokens, of_tokenizer, read_frequencies

    if option == "tokenizer":
        return of_tokenizer(tokenizer)
    if option not in ("train", "corpus"):
        return read_frequencies(option, tokenizer)
    if option == "corpus" or source.kind not in ("grammar", "hub", "folder"):
        return None
    texts = _training_texts(source)
    return None if texts is None else count_tokens(texts, tokenizer, source=f"{source.data} train")


def _training_texts(source: data.Source) -> Any:
    """The texts of the split train; None if there is none."""
    from headcount.corpora.plain import SUFFIX
    from headcount.corpora.sentences import has_plain_text

    if source.kind == "folder" and not source.languages and has_plain_text(Path(source.data)):
        return replace(source, split="train", limit=None).plain() if "train" in source.split_names((SUFFIX,)) else None
    splits = source.parallel().splits
    return splits["train"]["source"] if "train" in splits else None
