"""Terms: the words of the page that a newcomer may not know, each explained in a sentence.

The page shows the explanation where a term is pointed at or tapped; the glossary of the site has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word with its explanation; forms: how else it is written."""

    name: str
    text: str
    forms: tuple[str, ...] = ()


TERMS = (
    Term(
        "attention head",
        "A part of a Transformer layer that decides, for each token, which other tokens to take information from. "
        "A head is named kind.layer.number, from 0: encoder.1.3.",
        ("attention heads", "head", "heads"),
    ),
    Term("layer", "One step of the model's computation; each has several heads side by side.", ("layers",)),
    Term("encoder", "The part of a model that reads the input."),
    Term("decoder", "The part of a model that writes the output, one token after another."),
    Term(
        "cross attention",
        "Attention from the decoder to the encoder: how a translation looks at the sentence it translates.",
        ("cross-attention", "cross"),
    ),
    Term("token", "A word or a piece of a word, as the model reads it.", ("tokens",)),
    Term("parameter", "One trained number of the model; fewer need less memory.", ("parameters",)),
    Term(
        "masked",
        "Switched off for the measurement: the head's output is set to zero, the model is otherwise unchanged.",
        ("masking", "switched off", "switching off"),
    ),
    Term(
        "pruned", "Made smaller: heads are removed from the model for good, with their weights.", ("prune", "pruning")
    ),
    Term("BLEU", "Quality of translations, from 0 to 100: how many word sequences agree with a reference translation."),
    Term("accuracy", "Share of examples that the model gets right."),
    Term("loss", "How surprised the model is by the right answer; lower is better."),
    Term("perplexity", "How many words the model hesitates between on average; lower is better."),
    Term(
        "cosine distance",
        "How far the model's output turns when something changes: 0 for the same direction, 1 for nothing in common.",
    ),
    Term(
        "95% interval",
        "A range that contains the true value in 95 of 100 repetitions of the measurement with other examples.",
        ("95% intervals",),
    ),
    Term("significant", "Too large to be chance, at the level stated.", ("significantly",)),
    Term(
        "Holm's correction",
        "Makes a test stricter when many heads are tested at once, so that none stands out by chance alone.",
    ),
    Term(
        "Spearman's r", "Agreement of two rankings: 1 for the same order, 0 for no relation, -1 for the opposite order."
    ),
    Term("role", "What a head does, in words: which tokens it looks at, more often than chance explains.", ("roles",)),
    Term("positional", "Role: the head looks at the token at a fixed distance, mostly the neighbour."),
    Term("syntactic", "Role: the head follows a grammatical relation, such as from a verb to its object."),
    Term("rare", "Role: the head looks at the rarest token of the sentence, or at one of the two rarest."),
    Term(
        "delimiter",
        "Role: the head looks at the start or the end of the text, or at punctuation; often it does nothing then.",
    ),
    Term("confidence", "The largest attention weight of a head, on average: 1 if it always looks at a single token."),
    Term(
        "gradient score",
        "A quick estimate of how much a head matters: how strongly the loss reacts to it. Higher = more important.",
        ("by gradient",),
    ),
    Term("relevance", "How much of the model's predictions can be traced back to the head."),
    Term(
        "random order",
        "The control: heads go in an order drawn by chance. A good ranking loses less than that.",
        ("random orders",),
    ),
    Term(
        "gates",
        "Numbers that multiply the heads and are trained until they are 0 or 1: the model chooses its heads itself.",
        ("gate", "l0"),
    ),
    Term("from scratch", "Trained from the beginning with few heads, instead of being made smaller afterwards."),
)

# Verb phrases for roles, to follow "2 heads": singular and plural.
ROLE_WORDS = {
    "positional": ("looks at a token at a fixed distance", "look at a token at a fixed distance"),
    "syntactic": ("follows a grammatical relation", "follow a grammatical relation"),
    "rare": ("looks at one of the two rarest tokens", "look at one of the two rarest tokens"),
    "delimiter": ("looks at the start, the end or punctuation", "look at the start, the end or punctuation"),
    "current-token": ("looks at the token itself", "look at the token itself"),
    "same-token": ("looks at other occurrences of the same token", "look at other occurrences of the same token"),
    "induction": ("looks at what followed the same token before", "look at what followed the same token before"),
    "alignment": ("moves through the source as it is translated", "move through the source as it is translated"),
}


def glossary_table() -> str:
    """The terms as Markdown."""
    rows = [f"| {term.name} | {term.text} |" for term in TERMS]
    return "\n".join(["| term | explanation |", "|---|---|", *rows, ""])
