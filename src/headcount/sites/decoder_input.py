"""The tokens that the decoder of an encoder-decoder reads, given those that it is to write.

Shapes: B texts, T positions.
"""

from __future__ import annotations

from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.errors import UsageError

IGNORED = -100  # label of a position where nothing is written: padding
_WRAPPING = ("mbart", "plbart")  # these begin with the last token of the target, its language


def start_token(config: PreTrainedConfig) -> int | None:
    """The token that a decoder reads first, as generation of transformers does: its own, or that of any text."""
    token = getattr(config, "decoder_start_token_id", None)
    return getattr(getattr(config, "decoder", None), "bos_token_id", None) if token is None else token


def decoder_input(labels_BT: Tensor, config: PreTrainedConfig) -> Tensor:
    """[B, T]: the start token, then all labels but the last; the padding token where a label is ignored."""
    real_BT, start = labels_BT != IGNORED, start_token(config)
    read_BT = labels_BT.roll(1, dims=1)
    if start is not None:
        read_BT[:, 0] = start
    elif config.model_type in _WRAPPING:
        read_BT[:, 0] = labels_BT.gather(1, (real_BT.sum(1, keepdim=True) - 1).clamp(min=0))[:, 0]
    else:
        raise UsageError(
            f"The config of this {config.model_type} names no token that its decoder starts with. Set "
            "decoder_start_token_id in config.json (model.config in Python) to the one it was trained with."
        )
    return read_BT.masked_fill(read_BT == IGNORED, getattr(config, "pad_token_id", None) or 0)


def generation_start(model: PreTrainedModel) -> int:
    """The first token of every output of `generate`, which has one also where `decoder_input` reads the last label."""
    settings = model.generation_config
    start = settings.decoder_start_token_id
    start = settings.bos_token_id if start is None else start
    if not isinstance(start, int):
        raise UsageError(
            f"generation_config of this {model.config.model_type} names no one token that its outputs start with: "
            f"decoder_start_token_id, or bos_token_id in its place, is {start}. Set decoder_start_token_id in "
            "generation_config.json (model.generation_config in Python) to the one it was trained with."
        )
    return start
