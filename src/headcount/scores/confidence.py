"""confidence: mean of the largest attention weight of a head (Voita et al. 2019, section 4).

The maximum attention weight of a query, averaged over the query tokens. Special tokens and padding are left out as
queries and as keys, and weights are not renormalised; the share of attention on special tokens is reported too. It
takes one pass, and no attention map is stored.
Shapes: B batch, H heads of a site, Q queries, K keys.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from numbers import Integral
from operator import length_hint

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.plural import plural
from headcount.probes.inputs import Inputs, inputs_of
from headcount.probes.peaks import at_places, few_places, peaks
from headcount.probes.positions import sides, special_ids
from headcount.probes.runs import site_runs, warn_of_idle
from headcount.probes.taps import tapped
from headcount.progress import Progress, silent
from headcount.record import Signature
from headcount.scores.score import Scores
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site
from headcount.statistics import RatioSums, Resampling, percentile_intervals
from headcount.tasks.batch import rows_of
from headcount.tasks.soundness import check_finite
from headcount.tasks.task import Task


class Confidence(Scores):
    """Confidence of each head with its 95% interval over sentences, and its share of attention on special tokens."""

    left_out: HeadGrid


def confidence(
    model: nn.Module,
    task: Task | None,
    *,
    specials: Collection[int] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress = silent,
) -> Confidence:
    """Mean over query tokens of the largest attention weight.

    specials: token ids to leave out. By default those of the task's tokenizer. A task without one has those that the
        config of the model names; there is a warning if it names none, as BERT's.
    """
    if task is None:
        raise UsageError("Confidence needs a task: the text whose tokens the heads look at.")
    special = special_ids(model, task.tokenizer) if specials is None else set(specials)
    if not all(isinstance(token, Integral) for token in special):
        raise UsageError(
            f"specials must be ids of tokens, such as tokenizer.convert_tokens_to_ids(['[CLS]']); got {specials!r}."
        )
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        inputs, runs = stack.enter_context(inputs_of(model)), stack.enter_context(site_runs(model))
        sums = _Sums(model, inputs, special, Resampling(resamples, seed=seed))
        stack.enter_context(tapped(model, "attention", sink=sums.add))
        batches = task.batches()
        of = length_hint(batches)
        for count, batch in enumerate(batches, start=1):
            inputs.begin(batch)
            sums.begin(rows_of(batch))
            task.nll(model, batch)
            sums.end()
            progress("batches", count, of)
    warn_of_idle(model, runs)
    arguments = {"score": "confidence", "specials": sorted(special)}
    return sums.scores(Signature(weights=weight_hash(model), data=task.fingerprint, seed=seed, arguments=arguments))


class _Sums:
    """Sums over queries: per sentence for one batch, and over all sentences, plain and resampled."""

    def __init__(self, model: nn.Module, inputs: Inputs, specials: Collection[int], resampling: Resampling) -> None:
        self._model, self._inputs, self._specials, self._resampling = model, inputs, specials, resampling
        self._heads = locate(model).heads
        self._place = {head: index for index, head in enumerate(self._heads)}
        self._special = np.zeros(len(self._heads))  # weights on specials
        self._ratios = RatioSums.none((len(self._heads),), (len(self._heads),))  # of weights to queries
        self._drawn = np.zeros((resampling.resamples, 2, len(self._heads)))  # weights, queries
        self._rows: np.ndarray = np.zeros(0)
        self._seen = 0

    def begin(self, examples: int) -> None:
        self._rows = np.zeros((3, examples, len(self._heads)))

    def add(self, site: Site, attention_BHQK: Tensor) -> None:
        rows, examples = len(attention_BHQK), self._rows.shape[1]
        if rows % examples:  # of multiple choice, an example has a row for each choice
            raise UsageError(
                f"{site.name} received {plural(rows, 'row')}, but the batch has {examples} examples. "
                "Confidence needs as many rows of the model for each example, and batches that name their inputs as "
                "the model does, such as input_ids."
            )
        inputs = self._inputs.now
        _check_mask(inputs.get("attention_mask"))
        queries, keys = sides(self._model, site, inputs, attention_BHQK.shape, self._specials)
        asked_BQ = queries.tokens_BT.to(attention_BHQK.device)
        tokens_BK, special_BK = (side.to(attention_BHQK.device) for side in (keys.tokens_BT, keys.special_BT))
        attended = peaks(attention_BHQK, tokens_BK)
        special_BHQ = at_places(attention_BHQK, *few_places(special_BK)).sum(-1)
        sees_BQ = asked_BQ & tokens_BK.any(-1, keepdim=True)
        columns = [self._place[head] for head in site.head_names()]
        for row, values_BHQ in enumerate((attended.weight_BHQ, special_BHQ, torch.ones_like(special_BHQ))):
            sums_BH = (values_BHQ.double() * sees_BQ[:, None]).sum(-1)
            check_finite(self._model, sums_BH, f"attention weights at {site.name}")
            self._rows[row][:, columns] += self._by_example(sums_BH)

    def _by_example(self, sums_BH: Tensor) -> np.ndarray:
        """[examples, H]: the sums of each example over its rows, such as the choices of multiple choice."""
        examples = self._rows.shape[1]
        return sums_BH.view(examples, -1, sums_BH.shape[1]).sum(1).cpu().numpy()

    def end(self) -> None:
        numbers = np.arange(self._seen, self._seen + self._rows.shape[1])
        self._seen += len(numbers)
        self._special += self._rows[1].sum(0)
        self._ratios += RatioSums.of(self._rows[0], self._rows[2])
        self._drawn += np.tensordot(self._resampling.counts(numbers), self._rows[[0, 2]], axes=(1, 1))

    def scores(self, signature: Signature) -> Confidence:
        queries_H = self._ratios.b
        if not queries_H.any():
            raise UsageError("No sentence has a token besides specials: there is nothing to measure confidence on.")
        with np.errstate(invalid="ignore", divide="ignore"):
            left_out_H = self._special / queries_H
            ends = percentile_intervals(self._drawn[:, 0] / self._drawn[:, 1], units=self._ratios.count)
        low_H, high_H = (np.clip(end_H, 0.0, 1.0) for end_H in self._ratios.widen(*ends))
        grids = [HeadGrid(list(zip(self._heads, map(float, row), strict=True))) for row in (low_H, high_H, left_out_H)]
        confidences = Confidence(
            list(zip(self._heads, map(float, self._ratios.value), strict=True)),
            signature=signature,
            low=grids[0],
            high=grids[1],
            details={"left_out": {str(head): share for head, share in grids[2].items()}},
        )
        confidences.left_out = grids[2]
        return confidences


def _check_mask(mask: Tensor | None) -> None:
    if mask is not None and mask.dim() == 4 and not mask.is_floating_point():
        raise UsageError(
            f"Confidence uses eager attention, which adds a mask of shape {list(mask.shape)} to the scores; it is "
            f"{mask.dtype}. Give it in floats: 0 where a query attends to a key, a large negative number elsewhere."
        )


SCORE = confidence
