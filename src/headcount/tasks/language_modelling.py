"""language-modelling: predict each token of a text from the previous ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.hooks import configured_module, is_encoder_decoder
from headcount.metrics import LOSS, PERPLEXITY
from headcount.sites.causality import is_causal
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch
from headcount.tasks.soundness import check_finite, check_logits
from headcount.tasks.text_task import PlainTextTask
from headcount.tasks.texts import model_inputs

METRICS = {"perplexity": PERPLEXITY, "loss": LOSS}


class LanguageModelling(PlainTextTask):
    """Plain texts; quality is perplexity or loss per token, from each text's log-likelihood and predicted tokens."""

    name = "language-modelling"
    predicts = trains = True
    measured_by = "language modelling: the loss of each token given those before it"
    METRICS = METRICS
    lacking = "No text has two tokens or more: there is nothing to predict. Give longer texts."

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        encoded = self._encode(rows)
        mask_BT = encoded["attention_mask"]
        labels_BT = encoded["input_ids"].masked_fill(mask_BT == 0, -100)
        return {"input_ids": encoded["input_ids"], "attention_mask": mask_BT, "labels": labels_BT}

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        """Number of tokens that have a token before them."""
        return int(np.maximum(self.lengths[rows, 0] - 1, 0).sum())

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        nll_B = _token_nll(self.logits(model, batch), batch).sum(-1)
        check_finite(model, nll_B, "losses")
        return nll_B

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Summed over predicted tokens."""
        return _token_nll(logits, batch, self.smoothing).sum()

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Loss per predicted token, and perplexity if it is the task's metric."""
        with evaluating(model):
            sums = np.asarray(sum(self.measure(model, batch).sum(0) for batch in self.batches()))
        return {name: float(metric.of_sums(sums)) for name, metric in (("loss", LOSS), (self.metric.name, self.metric))}

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        _check_direction(model)
        logits_BTV: Tensor = model(**model_inputs(model, batch, ("input_ids", "attention_mask"))).logits
        check_logits(model, logits_BTV, self.name, dimensions=3)
        return logits_BTV

    def predicted(self, batch: Batch) -> Tensor:
        """Whether a token follows each position; none follows the last."""
        return torch.nn.functional.pad(_predicted(batch), (0, 1))

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: negative log-likelihood and predicted tokens of each text."""
        return np.stack([self.nll(model, batch).double().cpu().numpy(), _predicted(batch).sum(-1).numpy()], axis=1)


def _check_direction(model: nn.Module) -> None:
    """Raise if the model sees the tokens it predicts."""
    name = type(configured_module(model)).__name__
    if is_encoder_decoder(model):
        raise UsageError(
            f"{name} is an encoder-decoder: its encoder sees the tokens that a language model predicts. Use the task "
            "translation."
        )
    if not is_causal(model):
        raise UsageError(
            f"{name} attends in both directions: as a language model it would see the tokens it predicts. Use the "
            "task masked-language-modelling."
        )


def _token_nll(logits_BTV: Tensor, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """[B, T-1]: negative log-likelihood of each token given those before it; 0 at padding.

    The vocabulary stays the last axis: over another one, torch sums the exponentials one by one, which takes twice
    as long and is up to 1e-4 nats too low.
    """
    device = logits_BTV.device
    target_BT = batch["labels"].to(device).masked_fill(~_real(batch).to(device), -100)[:, 1:]
    scores_NV = logits_BTV[:, :-1].float().flatten(0, 1)
    nll_N = nn.functional.cross_entropy(
        scores_NV, target_BT.flatten(), ignore_index=-100, reduction="none", label_smoothing=smoothing
    )
    return nll_N.view_as(target_BT)


def _real(batch: Batch) -> Tensor:
    """[B, T]: tokens that have a token before them in their text (the first one is predicted from nothing)."""
    mask_BT: Tensor = batch["attention_mask"].bool()
    before_BT = torch.cat([torch.zeros_like(mask_BT[:, :1]), mask_BT[:, :-1]], dim=1)
    return mask_BT & before_BT


def _predicted(batch: Batch) -> Tensor:
    return _real(batch)[:, 1:]


TASK = LanguageModelling
