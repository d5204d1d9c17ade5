"""roles: what every head of a model does on a corpus, in one pass over it.

Attention is reduced layer by layer to the maximum of each query, and only sums over sentences are stored. Confidence
is computed in the same pass.
Shapes: B batch, H heads of a site, Q queries, K keys, L labels of all roles, R resamples.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.corpora.frequencies import Frequencies, check_frequencies
from headcount.corpora.tree import Tree
from headcount.errors import CorpusError, UnknownName, UsageError, check_list, check_type
from headcount.head_roles.encoding import Batch, Encoder, batches, id_count, windows
from headcount.head_roles.evidence import HalvedEvidence, decided, held
from headcount.head_roles.reading import Reading
from headcount.head_roles.role import FURTHEST, Role, Trials
from headcount.head_roles.role import roles as members
from headcount.head_roles.sight import Sight, View
from headcount.head_roles.tallies import Column, Tally
from headcount.heads import Head, HeadGrid
from headcount.hooks import config_of, configured_module, is_encoder_decoder
from headcount.probes.positions import Positions, special_ids
from headcount.probes.site_masks import allowed_keys, site_masks
from headcount.probes.taps import tapped
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.sites.causality import is_causal
from headcount.sites.decoder_input import IGNORED, decoder_input
from headcount.sites.devices import input_device
from headcount.sites.fingerprint import weight_hash
from headcount.sites.inputs import longest
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site, SiteKey
from headcount.statistics import Interval, Resampling
from headcount.tasks.soundness import check_finite, check_ids

_KINDS = ("encoder", "decoder", "cross")


class Roles(HeadGrid):
    """Evidence for the roles of every head, as `hc.roles` measures it: a HeadGrid of lists of `Evidence`.

    A head has one entry for each role and label with trials, and an empty list if it did not run.

    Attributes:
        confidence: Mean of the largest attention weight of each head with its interval; None if the head did not run.
        left_out: Share of each head's attention on special tokens; NaN if the head did not run.
        signature: Model, data and settings.
        skipped: Number of skipped sentences or instances, by reason.
        relations: Number of instances of every relation in the trees.
        relative: Number of instances of every relation by the offset, in words, of the other word.
        sentences: Number of sentences measured.
        trees: Number of these that have a tree.
    """

    confidence: HeadGrid
    left_out: HeadGrid
    signature: Signature
    skipped: Counter[str]
    relations: Counter[str]
    relative: Mapping[str, Mapping[int, int]]
    sentences: int
    trees: int

    def held(self) -> HeadGrid:
        """The roles that each head has, those with the largest margin first."""
        return self.map(held)

    def _shown(self, value: Any) -> str:
        return ", ".join(dict.fromkeys(f"{evidence.role} {evidence.label}" for evidence in held(value))) or "-"

    def _tooltip(self, head: Head, value: Any) -> str:
        return ", ".join(map(str, held(value))) or "no role"

    def _from(self) -> str:
        return f"{self.sentences} sentences, {self.trees} with trees | {self.signature}"


def roles(
    model: nn.Module,
    corpus: Iterable[Tree | str],
    *,
    tokenizer: PreTrainedTokenizerBase,
    targets: Iterable[str] | None = None,
    roles: Sequence[str] | None = None,
    frequencies: Frequencies | None = None,
    tokens: int = 4096,
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress = silent,
    **reading: Any,
) -> Roles:
    """Measure what every head of a model does: the evidence for each role, with baseline and bootstrap interval.

    Args:
        model: The model.
        corpus: Trees (of a treebank or the embedded grammar), or plain texts, on which syntactic roles cannot be
            measured.
        tokenizer: Tokenizer of the model.
        targets: Translations of the sentences. Without them, only the encoder of an encoder-decoder is measured.
        roles: Names of the roles to measure. By default all.
        frequencies: Token frequencies in the training data, for the rare role. By default counted in the corpus.
        tokens: Most tokens in a batch, padding included.
        resamples: Number of bootstrap resamples of the sentences.
        seed: Random seed of the bootstrap.
        progress: Function called with (stage, step, number of steps).
        reading: Variants of the definitions: relations, directions, margin, excess, diagonal, edges, thresholds,
            furthest, common. `Reading` explains them.

    Returns:
        The evidence of every head; `.held()` gives the roles that heads have.

    Raises:
        CorpusError: If no sentence of the corpus can be used.
    """
    _check_text(model)
    read = Reading.of(reading)
    measured_roles = {name: members[name] for name in (members.names() if roles is None else roles)}
    check_list("corpus", corpus, "sentences (trees or texts)")
    if targets is not None:
        check_list("targets", targets, "translations")
    check_type("tokenizer", tokenizer, Callable, "the tokenizer of the model, from AutoTokenizer.from_pretrained")
    check_frequencies(frequencies)
    corpus = corpus if isinstance(corpus, Sized) else list(corpus) if frequencies is None else corpus
    counted = frequencies or (count_corpus(corpus, tokenizer) if "rare" in measured_roles else None)
    if counted and read.common is None:
        read = replace(read, common=counted.common)
    encoder = Encoder(tokenizer, longest=longest(model, 1 << 30), relations=read.relations)
    work = Measurement(model, tokenizer, measured_roles, read, counted, Resampling(resamples, seed=seed))
    total = len(corpus) if isinstance(corpus, Sized) else 0
    with evaluating(model), site_masks(model) as work.masks, tapped(model, "attention", sink=work.see):
        for count, sentences in windows(encoder, corpus, targets):
            for batch in batches(sentences, tokens):
                work.run(batch)
            progress("sentences", count, total)
    if not work.sentences:
        raise CorpusError(f"No usable sentence; skipped: {dict(encoder.skipped) or 'none, the corpus is empty'}.")
    if "relations" in reading and "syntactic" in measured_roles:
        _check_relations(encoder, read)
    arguments = {**asdict(read), "roles": sorted(measured_roles), "frequencies": counted.source if counted else None}
    signature = Signature(weights=weight_hash(model), seed=seed, arguments={**arguments, "resamples": resamples})
    return work.result(encoder, signature)


def read_sentences(
    model: nn.Module,
    corpus: Iterable[Tree | str],
    tokenizer: PreTrainedTokenizerBase,
    targets: Iterable[str] | None = None,
) -> list[int]:
    """Numbers of the sentences that `roles` reads; it skips empty ones and those too long for the model."""
    encoder = Encoder(tokenizer, longest=longest(model, 1 << 30), relations=())
    return [sentence.number for _, window in windows(encoder, corpus, targets) for sentence in window]


def _check_text(model: nn.Module) -> None:
    """Raise if roles are not defined: for models of images or speech, or with towers that cannot be distinguished."""
    original = configured_module(model)
    kinds = set(locate(model).kinds) & set(_KINDS)
    if "input_ids" not in inspect.signature(original.forward).parameters or not kinds:
        raise UsageError(f"Roles need a text model; {type(original).__name__} takes no input_ids.")


def count_corpus(corpus: Iterable[Tree | str], tokenizer: PreTrainedTokenizerBase) -> Frequencies | None:
    from headcount.corpora.frequencies import count_tokens

    texts = [item.text if isinstance(item, Tree) else item for item in corpus]
    texts = [text for text in texts if isinstance(text, str) and text.strip()]
    return count_tokens(texts, tokenizer, source="the corpus itself") if texts else None


def _check_relations(encoder: Encoder, reading: Reading) -> None:
    """Raise if no tree has a requested relation: its name is probably wrong."""
    for relation in reading.relations:
        if encoder.trees and not encoder.relation_counts[relation]:
            raise UnknownName("relation in these trees", relation, encoder.relation_counts)


@dataclass
class _Shown:
    """Queries, keys and trials of one kind of attention in the current batch, of layers with the same window."""

    view: View
    trials: dict[str, Trials | None]  # by role
    trials_BL: np.ndarray
    chance_BL: np.ndarray
    offsets: dict[int, np.ndarray]  # trials by offset, by the first column of their role


class Measurement:
    """One pass over a corpus: `run` runs the model on a batch, `see` receives the attention of each site."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        roles: Mapping[str, Role],
        reading: Reading,
        frequencies: Frequencies | None,
        resampling: Resampling,
    ) -> None:
        self._model, self._reading = model, reading
        self._original: Any = configured_module(model)
        self._config = config_of(self._original)
        self._frequencies = frequencies.table(id_count(model, tokenizer)) if frequencies else None
        self._both = is_encoder_decoder(model)
        self._sites = locate(model)
        self._specials = special_ids(model, tokenizer)
        self._padding = tokenizer.pad_token_id or 0
        self._roles = {"self": _of(roles, "self"), "cross": _of(roles, "cross")}
        self._columns = {kind: _columns(members, reading) for kind, members in self._roles.items()}
        self._resampling = resampling
        self._tallies: dict[tuple[str, int], Tally] = {}
        self.masks: Mapping[SiteKey, Tensor] = {}  # of each site in the current run
        self._shown: dict[str, list[_Shown]] = {}  # by kind; the first without a window
        self._by_mask: dict[tuple[str, int], tuple[Tensor | None, _Shown]] = {}  # by kind and id of the mask
        self._runs: dict[Site, list[tuple[_Shown, Tensor]]] = {}  # hits [B, H, L] of each run in the current batch
        self._counts_RB = np.zeros(0)
        self.sentences = 0

    def run(self, batch: Batch) -> None:
        self.sentences += len(batch.rows)
        self._shown, self._by_mask, self._runs = {}, {}, {}
        self._batch = batch
        self._counts_RB = self._resampling.counts(batch.numbers)
        device = input_device(self._model)
        check_ids(self._model, batch.ids_BT)
        mask_BT = batch.real_BT.long()
        inputs = {"input_ids": batch.ids_BT.where(batch.real_BT, self._padding), "attention_mask": mask_BT}
        if self._both and batch.has_targets:
            inputs["decoder_input_ids"] = decoder_input(batch.labels_BT, self._config)
        self._inner(batch)(**{name: value.to(device) for name, value in inputs.items()}, **self._no_cache(batch))
        for site, runs in self._runs.items():
            self._add(site, runs)

    def _add(self, site: Site, runs: list[tuple[_Shown, Tensor]]) -> None:
        """Add the hits of a site, the mean over its runs: a trial is one of the text, however often the site runs.

        ALBERT's only site runs in every layer. Its runs on a sentence depend on each other: they are no sentences.
        """
        outputs, columns = runs[0][0], self._columns[_group(site.kind)]
        if site.key not in self._tallies:
            self._tallies[site.key] = Tally(columns, site.num_heads, self._resampling.resamples)
        hits_BHL = torch.stack([run_BHL for _, run_BHL in runs]).mean(0).numpy()
        self._tallies[site.key].add(
            hits_BHL, outputs.trials_BL, outputs.chance_BL, outputs.offsets, self._counts_RB, self._batch.numbers
        )

    def _inner(self, batch: Batch) -> Any:
        """The module to run: without the output head, and without the decoder if there are no targets."""
        if self._both and not batch.has_targets:
            return self._original.get_encoder()
        return getattr(self._original, "base_model", self._original)

    def _no_cache(self, batch: Batch) -> dict[str, bool]:
        decodes = batch.has_targets if self._both else "decoder" in self._sites.kinds
        return {"use_cache": False} if decodes else {}

    def see(self, site: Site, attention_BHQK: Tensor) -> None:
        if site.kind not in _KINDS:
            return
        kind = _group(site.kind)
        views = self._shown_to(site)
        sight = Sight(views.view, attention_BHQK)
        hits_BHL = torch.zeros(*attention_BHQK.shape[:2], len(self._columns[kind]) + 2)
        start = 0
        for name, role in self._roles[kind].items():
            trials, width = views.trials[name], len(role.labels(self._reading))
            if trials is not None:
                hits_BHL[..., start : start + width] = role.hits(trials, sight)
            start += width
        asked_BQ = _asked(views.view)
        hits_BHL[..., start] = (sight.confidence_BHQ * asked_BQ[:, None]).sum(-1)
        hits_BHL[..., start + 1] = (sight.special_BHQS.sum(-1) * asked_BQ[:, None]).sum(-1)
        check_finite(self._original, hits_BHL, f"attention weights at {site.name}")
        self._runs.setdefault(site, []).append((views, hits_BHL))

    def _shown_to(self, site: Site) -> _Shown:
        mask = self.masks.get(site.key)
        key = site.kind, id(mask)
        if key not in self._by_mask:
            self._by_mask[key] = mask, self._within(site, mask)  # the mask is held, so that its id stays its own
        return self._by_mask[key][1]

    def _within(self, site: Site, mask: Tensor | None) -> _Shown:
        """Trials among the keys that a mask allows; those of another site of the kind if it sees the same."""
        if site.kind not in self._shown:
            self._shown[site.kind] = [self._show(site.kind, self._view(site.kind))]
        unlimited = self._shown[site.kind][0]
        if mask is None or mask.shape[-1] != unlimited.view.keys.ids_BT.shape[1]:
            return unlimited
        view = replace(unlimited.view, allowed_BQK=allowed_keys(site, mask))
        stage = next((stage for stage in self._shown[site.kind] if stage.view.equals(view)), None)
        if stage is None:
            stage = self._show(site.kind, view)
            self._shown[site.kind].append(stage)
        return stage

    def _show(self, kind: str, view: View) -> _Shown:
        """Compute trials and chance once for all sites with this view."""
        group = _group(kind)
        width = len(self._columns[group]) + 2
        trials_BL, chance_BL = torch.zeros(len(self._batch.rows), width), torch.zeros(len(self._batch.rows), width)
        views, offsets, start = {}, {}, 0
        for name, role in self._roles[group].items():
            views[name] = trials = role.trials(view)
            stop = start + len(role.labels(self._reading))
            if trials is not None:
                trials_BL[:, start:stop], chance_BL[:, start:stop] = trials.trials_BL, trials.chance_BL
                if trials.offsets_2LO is not None:
                    offsets[start] = trials.offsets_2LO
            start = stop
        trials_BL[:, start:] = _asked(view).sum(-1)[:, None]
        return _Shown(view, views, trials_BL.numpy(), chance_BL.numpy(), offsets)

    def _view(self, kind: str) -> View:
        batch = self._batch
        source = Positions(batch.ids_BT, batch.real_BT, batch.special_BT)
        if kind == "cross":
            return View(batch, "cross", False, self._written(batch), source, self._reading, None)
        if kind == "decoder" and self._both:
            read = Positions.of(
                decoder_input(batch.labels_BT, self._config), batch.labels_BT != IGNORED, self._specials
            )
            read.special_BT[:, 0] = True  # the start token, whatever its id
            return View(_without_words(batch), "self", True, read, read, self._reading, None)
        return View(batch, "self", is_causal(self._model, kind), source, source, self._reading, self._frequencies)

    def _written(self, batch: Batch) -> Positions:
        real_BT = batch.labels_BT != IGNORED
        return Positions.of(batch.labels_BT.where(real_BT, self._padding), real_BT, self._specials)

    def evidence(self) -> dict[tuple[str, int], list[list[HalvedEvidence]]]:
        """The evidence of each head of each site that ran, with verdicts corrected for all of them."""
        by_site = {
            key: tally.evidence(self._roles[_group(key[0])], self._reading) for key, tally in self._tallies.items()
        }
        verdicts = iter(decided([evidence for heads in by_site.values() for head in heads for evidence in head]))
        return {key: [[next(verdicts) for _ in head] for head in heads] for key, heads in by_site.items()}

    def result(self, encoder: Encoder, signature: Signature) -> Roles:
        heads, by_site = self._sites.heads, self.evidence()
        evidence: dict[Any, tuple[HalvedEvidence, ...]] = dict.fromkeys(heads, ())
        confidence: dict[Any, Interval | None] = dict.fromkeys(heads, None)
        left_out: dict[Any, float] = dict.fromkeys(heads, float("nan"))
        relative: dict[str, dict[int, int]] = {}
        for site in self._sites:
            tally = self._tallies.get(site.key)
            if tally is None:
                continue
            values = tally.values()
            for index, head in enumerate(site.head_names()):
                evidence[head] = tuple(by_site[site.key][index])
                confidence[head] = Interval(*(float(part[index, -2]) for part in values))
                left_out[head] = float(values[0][index, -1])
            relative = max(relative, _relative(tally), key=_instances)  # a window leaves some out
        grid = Roles(list(evidence.items()), "object")
        grid.confidence, grid.left_out = HeadGrid(list(confidence.items()), "object"), HeadGrid(list(left_out.items()))
        grid.signature, grid.skipped, grid.relations = signature, encoder.skipped, encoder.relation_counts
        grid.relative, grid.sentences, grid.trees = relative, self.sentences, encoder.trees
        return grid


def _group(kind: str) -> str:
    """The attention that roles are defined for, of a kind of site."""
    return "cross" if kind == "cross" else "self"


def _of(roles: Mapping[str, Role], kind: str) -> dict[str, Role]:
    return {name: role for name, role in roles.items() if kind in role.kinds}


def _columns(roles: Mapping[str, Role], reading: Reading) -> list[Column]:
    return [
        Column(name, label, signed=label in getattr(role, "signed", ()))
        for name, role in roles.items()
        for label in role.labels(reading)
    ]


def _asked(view: View) -> Tensor:
    """Queries that count for confidence: every token that can attend to a token."""
    return view.queries.tokens_BT & view.keys.tokens_BT.any(-1, keepdim=True)


def _without_words(batch: Batch) -> Batch:
    """The same sentences without trees and punctuation, which belong to the source."""
    return Batch([replace(row, words=[], arcs=[], punctuation=[False] * len(row.target)) for row in batch.rows])


def _instances(relative: Mapping[str, Mapping[int, int]]) -> int:
    return sum(sum(counts.values()) for counts in relative.values())


def _relative(tally: Tally) -> dict[str, dict[int, int]]:
    offsets_LO = tally.offsets_2LO.sum(0)
    return {
        column.label: {offset - FURTHEST: int(count) for offset, count in enumerate(offsets_LO[index]) if count}
        for index, column in enumerate(tally.columns)
        if offsets_LO[index].any()
    }
