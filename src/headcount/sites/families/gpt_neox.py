"""GPT-NeoX: one fused projection whose rows are ordered by head."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("GPTNeoXAttention",),
    query="query_key_value", key="query_key_value", value="query_key_value", output="dense",
    interleaved=True, head_dim="head_size", stack="decoder", cache="layer_past",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("gpt_neox",))
