"""DeBERTa v2 and v3: disentangled attention; the position projections have rows per head as well."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("DisentangledSelfAttention",),
    query="query_proj", key="key_proj", value="value_proj", output="..output.dense",
    head_dim="attention_head_size", count=("num_attention_heads",), width=("all_head_size",),
    extra=("pos_key_proj", "pos_query_proj"), ask_weights=True, tail="context",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("deberta-v2",))
