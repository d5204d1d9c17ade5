"""played: replaces a head by its role, which is the causal test of the role. Knows sentences, not tasks.

Raganato et al. 2020 and You et al. 2020 replaced learned attention by fixed offsets; here any role that defines targets
(`Playable`) can replace the attention of a head. The head's values and output projection are kept.
Shapes: B batch, T tokens, Q queries, K keys, D head size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.frequencies import Frequencies, check_frequencies
from headcount.corpora.tree import Tree
from headcount.errors import UsageError, check_list, check_name, check_type
from headcount.head_roles.encoding import Batch, Encoder, Sentence, id_count
from headcount.head_roles.reading import Reading
from headcount.head_roles.role import Playable, roles
from headcount.head_roles.sight import View
from headcount.heads import Head
from headcount.hooks import Hooks, configured_module, is_encoder_decoder
from headcount.probes.positions import Positions, special_ids
from headcount.probes.site_masks import allowed_keys, site_masks
from headcount.probes.values import Output, recomputed
from headcount.sites.causality import is_causal
from headcount.sites.locate import locate
from headcount.sites.sides import of_text
from headcount.sites.site import Site, SiteKey

Elsewhere = Literal["own", "zero"]
_NO_IDS = "Heads can be replaced by roles only if the model is run with input_ids."


@contextmanager
def played(
    model: nn.Module,
    parts: Mapping[str, str] | Mapping[Head, str],
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    trees: Iterable[Tree | str] | None = None,
    frequencies: Frequencies | None = None,
    elsewhere: Elsewhere = "own",
    **reading: Any,
) -> Iterator[None]:
    """Replace the attention of heads by a role inside the block: equal attention to its targets, none elsewhere.

    In a layer with a sliding window, targets outside of it are none. `tapped` reads the outputs of a replaced head as
    its role gives them, its attention as the model computes it.

    Args:
        model: The model.
        parts: Role and label of each head, as in evidence: "positional -1", "syntactic nsubj v->s", "rare rarest". A
            name may stand for several heads: "encoder.0.*".
        tokenizer: Tokenizer of the model: its special tokens are neither queries nor targets. Without it, those that
            the config of the model names; some, such as BERT's, name none. Needed with trees and frequencies.
        trees: Trees of the sentences that will be run, for syntactic roles. Plain texts have no syntactic targets.
        frequencies: Token frequencies, for the rare role.
        elsewhere: What a head does for queries without a target: "own" keeps its attention, "zero" gives no output.
        reading: Variants of the definitions, see `Reading`.
    """
    check_name("behaviour elsewhere", elsewhere, get_args(Elsewhere))
    check_type("parts", parts, Mapping, "a role for each head, such as {'encoder.0.3': 'positional -1'}")
    check_frequencies(frequencies)
    if trees is not None:
        check_list("trees", trees, "trees, as read_conllu reads them")
    stage = _Stage(model, tokenizer, trees, frequencies, Reading.of(reading))
    sites = locate(model)
    outputs: dict[Head, Output] = {}
    for name, text in parts.items():
        for head in sites.find(name):
            if head in outputs:
                raise UsageError(f"{head} has two roles in parts; give each head once.")
            outputs[head] = _output(stage.part(sites[head.site], head, text), elsewhere)
    with Hooks(model) as hooks, site_masks(model) as stage.masks, recomputed(model, outputs):
        stage.attach(hooks, {head.kind for head in outputs})
        yield


def _output(targets: Callable[[], Tensor], elsewhere: Elsewhere) -> Output:
    def output(own_BQD: Tensor, values_BKD: Tensor) -> Tensor:
        wanted_BQK = targets().to(values_BKD.device)
        count_BQ1 = wanted_BQK.sum(-1, keepdim=True)
        attention_BQK = wanted_BQK.to(values_BKD.dtype) / count_BQ1.clamp_min(1)
        own_BQD = own_BQD if elsewhere == "own" else torch.zeros_like(own_BQD)
        return torch.where(count_BQ1 > 0, attention_BQK @ values_BKD, own_BQD)

    return output


class _Stage:
    """The current input of the model, and the targets of each role in it."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        trees: Iterable[Tree | str] | None,
        frequencies: Frequencies | None,
        reading: Reading,
    ) -> None:
        if (trees is not None or frequencies is not None) and tokenizer is None:
            raise UsageError("trees= and frequencies= also need tokenizer=.")
        self._model: Any = configured_module(model)
        self._both = is_encoder_decoder(model)
        self._specials = special_ids(model, tokenizer)
        self._frequencies = frequencies.table(id_count(model, tokenizer)) if frequencies else None
        common = reading.common if reading.common is not None or frequencies is None else frequencies.common
        self._reading = replace(reading, common=common)
        self._sentences = None if trees is None else _by_ids(trees, tokenizer, reading)
        self._ids: dict[str, Tensor] = {}
        self._real: dict[str, Tensor | None] = {}
        self._wanted: dict[tuple[str, str, str], Tensor] = {}
        self.masks: Mapping[SiteKey, Tensor] = {}  # of each site in the current run

    def part(self, site: Site, head: Head, text: str) -> Callable[[], Tensor]:
        """[B, Q, K]: targets of a role in the current run."""
        check_type(f"The role of {head}", text, str, "text, such as 'positional -1'")
        name, _, label = text.strip().partition(" ")
        role, playable = roles[name], [other for other in roles.names() if isinstance(roles[other], Playable)]
        if not isinstance(role, Playable) or head.kind == "cross":
            what = "cross attention" if isinstance(role, Playable) else f"the role {name}"
            raise UsageError(f"{head} cannot be replaced by {what}: only {', '.join(playable)} in self-attention can.")
        if not of_text(site):
            raise UsageError(f"{head} cannot be replaced by a role: its positions are no tokens of a text.")
        labels = role.labels(self._reading)
        check_name(f"label of the role {name}", label, labels)
        if name == "syntactic" and self._sentences is None:
            raise UsageError(f"{text} needs the dependency trees of the sentences: give trees= and tokenizer=.")
        return lambda: self._within_window(site, self._said(head.kind, name, role, label))

    def attach(self, hooks: Hooks, kinds: Iterable[str]) -> None:
        for kind in kinds:
            hooks.see_arguments(self._stack(kind), self._reader(kind))

    def _stack(self, kind: str) -> Any:
        """The innermost module around attention of this kind that takes input ids; OPT does not run the one outside."""
        attention = next(site.module for site in locate(self._model) if site.kind == kind)
        around = [part for part in self._model.modules() if any(inner is attention for inner in part.modules())]
        readers = [part for part in around if "input_ids" in inspect.signature(part.forward).parameters]
        if not readers:
            raise UsageError(_NO_IDS)
        return readers[-1]

    def _reader(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        def read(arguments: Mapping[str, Any]) -> None:
            ids_BT, mask = arguments.get("input_ids"), arguments.get("attention_mask")
            if not isinstance(ids_BT, Tensor):
                raise UsageError(_NO_IDS)
            cache = arguments.get("past_key_values")
            if cache is not None and cache.get_seq_length() > 0:
                raise UsageError(
                    "Heads can be replaced by roles only on whole sentences: run the decoder with use_cache=False."
                )
            self._ids[kind] = ids_BT
            self._real[kind] = mask if isinstance(mask, Tensor) and mask.dim() == 2 else None
            self._wanted = {key: value for key, value in self._wanted.items() if key[0] != kind}

        return read

    def _said(self, kind: str, name: str, role: Playable, label: str) -> Tensor:
        key = kind, name, label
        if key not in self._wanted:
            self._wanted[key] = self._spread(kind, role, label)
        return self._wanted[key]

    def _within_window(self, site: Site, wanted_BQK: Tensor) -> Tensor:
        """The targets that a site can attend to. Raises if it has a window that no mask shows."""
        mask, window = self.masks.get(site.key), getattr(site.module, "sliding_window", None)
        if mask is not None and mask.shape[-1] == wanted_BQK.shape[-1]:
            return wanted_BQK & allowed_keys(site, mask)
        if isinstance(window, int) and window < wanted_BQK.shape[-1]:
            raise UsageError(
                f"{site.name} attends within a window of {window} tokens, which its attention backend does not show: "
                "load the model with attn_implementation='eager' to replace its heads."
            )
        return wanted_BQK

    def _spread(self, kind: str, role: Playable, label: str) -> Tensor:
        """The targets of each sentence, shifted to the position of the sentence within its padding."""
        ids_BT = self._ids[kind].cpu()
        mask_BT = self._real[kind]
        real_BT = torch.ones_like(ids_BT, dtype=torch.bool) if mask_BT is None else mask_BT.bool().cpu()
        batch = Batch(
            [
                self._sentence(row, ids[real].tolist())
                for row, (ids, real) in enumerate(zip(ids_BT, real_BT, strict=True))
            ]
        )
        side = Positions(batch.ids_BT, batch.real_BT, batch.special_BT)
        view = View(batch, "self", is_causal(self._model, kind), side, side, self._reading, self._frequencies)
        said_BQK = role.wanted(view, label)
        wanted_BQK = torch.zeros(*ids_BT.shape, ids_BT.shape[1], dtype=torch.bool)
        for row, sentence in enumerate(batch.rows):
            places = real_BT[row].nonzero()[:, 0]
            length = len(sentence.ids)
            wanted_BQK[row, places[:, None], places] = said_BQK[row, :length, :length]
        return wanted_BQK

    def _sentence(self, row: int, ids: list[int]) -> Sentence:
        if self._sentences is None:
            special = [token in self._specials for token in ids]
            return Sentence(row, ids, special, [False] * len(ids), [], [], [])
        if tuple(ids) not in self._sentences:
            raise UsageError(
                f"Row {row} of the batch is none of the {len(self._sentences)} sentences in trees=: its tokens "
                f"begin {ids[:8]}. Give the trees of all sentences that are run, and the model's own tokenizer."
            )
        return self._sentences[tuple(ids)]


def _by_ids(
    trees: Iterable[Tree | str], tokenizer: PreTrainedTokenizerBase, reading: Reading
) -> dict[tuple[int, ...], Sentence]:
    encoder = Encoder(tokenizer, longest=1 << 30, relations=reading.relations)
    encoded = [encoder.sentence(number, tree, None) for number, tree in enumerate(trees)]
    return {tuple(sentence.ids): sentence for sentence in encoded if sentence is not None}
