"""embedding: change of the output of a model without a loss, as 1 - cosine to the output of the whole model.

The embedding of a text is its last hidden states, padding left out, pooled as the files of the whole model state: by
the mean unless they name another pooling.
Shapes: B batch, T tokens, D width of the model, N texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.errors import UsageError
from headcount.hooks import configured_module
from headcount.metrics import COSINE_DISTANCE, Metric
from headcount.sites.devices import input_device
from headcount.sites.fingerprint import weight_hash
from headcount.sites.rotary import forget_widest
from headcount.sites.running import evaluating
from headcount.tasks.batch import Batch
from headcount.tasks.pooling import MEAN, pool, pooling_of, token_limit
from headcount.tasks.soundness import check_ids
from headcount.tasks.task import Reading
from headcount.tasks.text_task import PlainTextTask
from headcount.tasks.texts import check_length

_ROUNDING = 1e-14


class Embedding(PlainTextTask):
    """Plain texts and a whole model; quality is the mean cosine distance of another model's embeddings from its.

    The whole model has distance 0, the minimum. The gradient of the distance is 0 there, so scores that need gradients
    are not defined; `ablation` is.
    """

    name = "embedding"
    stationary = True
    measured_by = (
        "how far its output moves: 1 - cosine between the embeddings of the model with and without a head, pooled as "
        "its files state (by default means over tokens)"
    )
    METRICS: ClassVar[Mapping[str, Metric]] = {COSINE_DISTANCE.name: COSINE_DISTANCE}

    def __init__(
        self,
        *,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        model: nn.Module,
        batch_size: int = 16,
        max_length: int | None = None,
        metric: str = "cosine distance",
    ) -> None:
        """model: the whole model, whose embeddings are the reference. It is run once and not stored.

        Texts are also truncated where the files of the model say so.
        """
        self.pooling = pooling_of(model)
        max_length = min((limit for limit in (max_length, token_limit(model)) if limit), default=None)
        super().__init__(
            texts=texts, tokenizer=tokenizer, metric=metric, batch_size=batch_size, max_length=max_length,
            hashed=[weight_hash(model), *([] if self.pooling == MEAN else [self.pooling])],
        )  # fmt: skip
        if not self.lengths.any():
            raise UsageError("Every text is empty: there is nothing to embed.")
        with evaluating(model):
            self._reference_ND = torch.cat([self._embeddings(model, batch) for batch in self.batches()])

    @classmethod
    def _further(cls, reading: Reading) -> dict[str, Any]:
        if reading.reference is None:
            raise UsageError("The embedding task compares with a reference model: give reference= (--against).")
        return {"model": reading.reference()}

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """The output of the tokenizer, and the indices of the texts."""
        return {**self._encode(rows), "rows": torch.as_tensor(np.asarray(rows, dtype=np.int64))}

    def nll(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B]: the cosine distance of each text, used as its loss; 0 of a text without tokens."""
        reference_BD = self._reference_ND[batch["rows"]]
        cosine_B = nn.functional.cosine_similarity(self._embeddings(model, batch), reference_BD, dim=-1)
        return (1 - cosine_B).clamp_min(0) * _filled(batch)  # rounding can make a cosine larger than 1

    def measure(self, model: nn.Module, batch: Batch) -> np.ndarray:
        """[B, 2]: cosine distance of each text, 0 but for rounding is 0, and 1; a text without tokens is no example."""
        distance_B = self.nll(model, batch)
        return torch.stack([distance_B * (distance_B > _ROUNDING), _filled(batch)], dim=1).numpy()

    def _embeddings(self, model: nn.Module, batch: Batch) -> Tensor:
        """[B, D] in double precision: distances of single heads can be as small as 1e-6."""
        original: Any = configured_module(model)
        base: Any = getattr(original, "base_model", original)
        if getattr(base.config, "is_encoder_decoder", False):
            raise UsageError(
                f"{type(original).__name__} is an encoder-decoder; the embedding task needs a model with one stack."
            )
        if hasattr(base, "get_text_features"):  # CLIP and its like run on texts and images together only
            raise UsageError(
                f"{type(original).__name__} compares texts with images; the embedding task needs a model with one "
                "stack. Save its text part as a checkpoint of its own, such as CLIPTextModel, and give that."
            )
        forget_widest(model)
        check_length(model, batch["input_ids"].shape[1])
        check_ids(model, batch["input_ids"])
        device = input_device(model)
        inputs = {name: value.to(device) for name, value in batch.items() if name != "rows"}
        states_BTD = base(**inputs).last_hidden_state.double()
        return pool(self.pooling, states_BTD, inputs["attention_mask"]).cpu()


def _filled(batch: Batch) -> Tensor:
    """[B]: 1 for each text with a token, else 0."""
    return (batch["attention_mask"].sum(-1) > 0).double()


TASK = Embedding
