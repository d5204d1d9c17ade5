"""BLOOM: fused rows ordered by head, and an ALiBi bias computed once for all layers."""

from torch import nn

from headcount.sites.attention import Attention, Family


def _unsupported(module: nn.Module) -> str | None:
    if getattr(module, "pretraining_tp", 1) > 1 and getattr(module, "slow_but_exact", False):
        return (
            "slow_but_exact multiplies by slices of the output weight; set config.slow_but_exact = False before loading"
        )
    return None


_ATTENTION = Attention(
    classes=("BloomAttention",),
    query="query_key_value", key="query_key_value", value="query_key_value", output="dense",
    interleaved=True, count=("num_heads",), shared_bias="bloom", stack="decoder", tail="bloom", cache="layer_past",
    unsupported=_unsupported,
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("bloom",))
