"""headcount roles: what every head of a model does, with evidence."""

from __future__ import annotations

import shlex
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
@click.option(
    "--directions",
    default="both",
    show_default=True,
    type=click.Choice(list(_DIRECTIONS)),
    help="Directions of a dependency relation that syntactic heads are searched for.",
)
@click.option(
    "--margin", default="relative", show_default=True, type=click.Choice(["relative", "points"]),
    help="Whether a syntactic head must exceed its baseline by a factor (relative) or a difference "
         "(absolute); see --excess.",
)  # fmt: skip
@click.option(
    "--excess",
    default=0.10,
    show_default=True,
    type=click.FloatRange(0),
    help="How far above its baseline a syntactic head must be: 0.1 is 10 % (relative) or 10 points (absolute).",
)
@click.option(
    "--diagonal/--no-diagonal",
    default=True,
    show_default=True,
    help="Count queries whose largest weight is on the token itself.",
)
@click.option(
    "--edges", default="possible", show_default=True, type=click.Choice(["possible", "all"]),
    help="Queries that count for positional roles: those with a token at the offset (possible), or all.",
)  # fmt: skip
@click.option(
    "--frequencies", default="train", show_default=True,
    help="Token frequencies for the rare role: train (of the grammar or of parallel text), corpus, "
         "tokenizer, or a file: .json or .tsv with counts, or text (.conllu or lines) to count.",
)  # fmt: skip
@click.option(
    "--common", type=click.IntRange(0),
    help="Number of most frequent tokens that are not rare. Default: the paper's 500 of 32,000, scaled to "
         "the vocabulary.",
)  # fmt: skip
@click.option(
    "--relevance",
    type=click.Path(exists=True, path_type=Path),
    help="Record of headcount score --method relevance, to compare with roles.",
)
@click.option("--play", is_flag=True, help="Also replace heads by their roles and measure the loss; takes longer.")
@click.option(
    "--resamples",
    default=1000,
    show_default=True,
    type=click.IntRange(10),
    help="Bootstrap samples of sentences behind each interval.",
)
@options.seed("the resampling")
@options.output
@options.as_json
def COMMAND(  # noqa: N802
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
    as_json: bool,
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
            live, sentences, tokenizer, name=model, data=f"{source.data} {source.split}", frequencies=token_frequencies,
            relevance=before, play_on=played_on, progress=bars.show, **reading,
        )  # fmt: skip
    roles = record.parts.roles
    head = next((head for head, held in roles.items() if held), next(iter(roles)))
    output.present(record, as_json, f"headcount attention {shlex.quote(model)} --head {head} --text '...'")


def _frequencies(option: str, source: data.Source, tokenizer: PreTrainedTokenizerBase) -> Any:
    """Token frequencies from the option; None if they are counted in the corpus."""
    from headcount.corpora.frequencies import count_tokens, of_tokenizer, read_frequencies

    if option == "tokenizer":
        return of_tokenizer(tokenizer)
    if option not in ("train", "corpus"):
        return read_frequencies(option, tokenizer)
    if option == "corpus" or source.kind not in ("grammar", "hub", "folder"):
        return None
    splits = source.parallel().splits
    return (
        count_tokens(splits["train"]["source"], tokenizer, source=f"{source.data} train") if "train" in splits else None
    )
