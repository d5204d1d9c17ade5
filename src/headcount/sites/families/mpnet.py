"""MPNet: the encoder computes one relative position bias with a column per head and passes it to every layer."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("MPNetSelfAttention",), query="q", key="k", value="v", output="o",
    head_dim="attention_head_size", count=("num_attention_heads",), width=("all_head_size",), shared_bias="mpnet",
    ask_weights=True,
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("mpnet",))
