"""masked-language-modelling: predict corrupted tokens of each text from the others (Devlin et al. 2019).

Shapes: B batch, T tokens, P predicted tokens of a batch, V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.errors import UsageError
from headcount.hooks import is_encoder_decoder
from headcount.metrics import LOSS, PERPLEXITY, TOKEN_ACCURACY
from headcount.sites.causality import is_causal
from headcount.sites.devices import input_device
from headcount.sites.rotary import forget_widest
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch
from headcount.tasks.soundness import check_finite, check_ids, check_logits
from headcount.tasks.text_task import PlainTextTask
from headcount.tasks.texts import check_length

IGNORED = -100  # label of a token that is not predicted
METRICS = {"perplexity": PERPLEXITY, "loss": LOSS, "accuracy": TOKEN_ACCURACY}
SHARE, MASKED, RANDOM = 0.15, 0.8, 0.1  # of a text's tokens; of these: the mask token, a random token, else unchanged


class MaskedLanguageModelling(PlainTextTask):
    """Plain texts; quality is perplexity, loss or accuracy of the corrupted tokens.

    Which tokens of a text are corrupted, and how, depends only on its tokens and the seed, not on its position in the
    data or its batch. Special tokens are never corrupted.
    """

    name = "masked-language-modelling"
    predicts = trains = True
    measured_by = (
        "masked language modelling: the loss of the 15 % of tokens that are corrupted (80 % masked, 10 % random, 10 % "
        "unchanged), the same ones every time"
    )
    METRICS = METRICS
    lacking = "Every text is empty or has special tokens only: there is nothing to predict."

    def __init__(
        self,
        *,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        batch_size: int = 16,
        max_length: int | None = None,
        metric: str = "perplexity",
        seed: int = 0,
    ) -> None:
        """metric: perplexity, loss or accuracy, all per corrupted token."""
        super().__init__(
            texts=texts, tokenizer=tokenizer, metric=metric, batch_size=batch_size, max_length=max_length, hashed=[seed]
        )
        if tokenizer.mask_token_id is None:
            raise UsageError(
                "The tokenizer has no mask token: the model was not trained by masked language modelling. Use another "
                "task, such as language-modelling."
            )
        self._corruption = Corruption(tokenizer, seed)
        self.identity = {**self.identity, "seed": seed}

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """The output of the tokenizer with corrupted ids; labels are the original ids of corrupted tokens."""
        encoded = dict(self._encode(rows))
        ids_BT, real_BT = encoded["input_ids"].clone(), encoded["attention_mask"].bool()
        labels_BT = torch.full_like(ids_BT, IGNORED)
        for number in range(len(ids_BT)):
            real_T = real_BT[number]
            corrupted, labels = self._corruption(ids_BT[number, real_T].numpy())
            ids_BT[number, real_T] = torch.from_numpy(corrupted)
            labels_BT[number, real_T] = torch.from_numpy(labels)
        return {**encoded, "input_ids": ids_BT, "labels": labels_BT}

    def targets(self, rows: Sequence[int] | np.ndarray) -> int:
        """Number of corrupted tokens."""
        return int(self.predicted(self.batch(rows)).sum())

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        nll_B = _by_example(_token_nll(self.logits(model, batch), batch), batch)
        check_finite(model, nll_B, "losses")
        return nll_B

    def logits_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Summed over corrupted tokens."""
        return _token_nll(logits, batch, self.smoothing).sum()

    @property
    def watched(self) -> tuple[str, ...]:
        return ("accuracy", *(["perplexity"] if self.metric is PERPLEXITY else []))

    def held_out(self, model: nn.Module) -> dict[str, float]:
        """Loss and accuracy per corrupted token, and perplexity if it is the task's metric."""
        with evaluating(model):
            sums = np.asarray(sum(self._contributions(model, batch).sum(0) for batch in self.batches()))
        perplexity = {"perplexity": float(PERPLEXITY.of_sums(sums[[0, 2]]))} if self.metric is PERPLEXITY else {}
        return {
            "loss": float(LOSS.of_sums(sums[[0, 2]])),
            "accuracy": float(TOKEN_ACCURACY.of_sums(sums[[1, 2]])),
            **perplexity,
        }

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        device = input_device(model)
        inputs = {name: value.to(device) for name, value in batch.items() if name != "labels"}
        forget_widest(model)
        check_length(model, batch["input_ids"].shape[1])
        check_ids(model, batch["input_ids"])
        if not is_encoder_decoder(model) and is_causal(model):
            raise UsageError(
                "A decoder does not see the tokens after a masked one, so it cannot be measured by "
                "masked-language-modelling. Use the task language-modelling."
            )
        logits_BTV: Tensor = model(**inputs).logits
        check_logits(model, logits_BTV, self.name, dimensions=3)
        return logits_BTV

    def predicted(self, batch: Batch) -> Tensor:
        return batch["labels"] != IGNORED

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: negative log-likelihood (or number of right predictions) and corrupted tokens of each text."""
        contributions_B3 = self._contributions(model, batch)
        return contributions_B3[:, [1, 2] if self.metric is TOKEN_ACCURACY else [0, 2]]

    def _contributions(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 3]: negative log-likelihood, right predictions and predictions of each text."""
        logits_BTV = self.logits(model, batch)
        predicted_BT = self.predicted(batch)
        answers_P = logits_BTV[predicted_BT.to(logits_BTV.device)].argmax(-1).cpu()
        right_P = (answers_P == batch["labels"][predicted_BT]).double()
        nll_B = _by_example(_token_nll(logits_BTV, batch), batch).double().cpu()
        check_finite(model, nll_B, "losses")
        return torch.stack([nll_B, _by_example(right_P, batch), predicted_BT.sum(-1).double()], dim=1).numpy()


class Corruption:
    """Which tokens of a text are to be predicted, and the tokens that replace them."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, seed: int) -> None:
        self._mask, self._seed = int(tokenizer.mask_token_id), seed
        self._special = np.array(sorted(tokenizer.all_special_ids))
        self._vocabulary = np.setdiff1d(np.arange(len(tokenizer)), self._special)

    def __call__(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Corrupted ids and labels of one text's ids, without padding; every text with a token has a label."""
        corrupted, labels = ids.copy(), np.full_like(ids, IGNORED)
        candidates = np.flatnonzero(~np.isin(ids, self._special))
        if len(candidates):
            random = np.random.default_rng(self._entropy(ids))
            count = max(1, round(SHARE * len(candidates)))
            positions = random.choice(candidates, count, replace=False)
            draw = random.random(count)
            tokens = random.choice(self._vocabulary, count)
            tokens = np.where(draw < MASKED + RANDOM, tokens, ids[positions])
            corrupted[positions] = np.where(draw < MASKED, self._mask, tokens)
            labels[positions] = ids[positions]
        return corrupted, labels

    def _entropy(self, ids: np.ndarray) -> int:
        content = f"{self._seed}:{','.join(map(str, ids.tolist()))}"
        return int.from_bytes(hashlib.blake2b(content.encode(), digest_size=16).digest(), "little")


def _token_nll(logits_BTV: Tensor, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """[P]: negative log-likelihood of each corrupted token, example after example."""
    labels_BT = batch["labels"].to(logits_BTV.device)
    predicted_BT = labels_BT != IGNORED
    scores_PV = logits_BTV[predicted_BT].float()
    labels_P = labels_BT[predicted_BT]
    return nn.functional.cross_entropy(scores_PV, labels_P, reduction="none", label_smoothing=smoothing)


def _by_example(values_P: Tensor, batch: Batch) -> Tensor:
    """[B]: values of the corrupted tokens summed for each example."""
    rows_P = (batch["labels"] != IGNORED).nonzero()[:, 0].to(values_P.device)
    return values_P.new_zeros(len(batch["labels"])).index_add(0, rows_P, values_P)


TASK = MaskedLanguageModelling
