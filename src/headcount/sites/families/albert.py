"""ALBERT: all layers share one attention module, so there is one site; a head is removed from all layers at once."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("AlbertAttention",), query="query", key="key", value="value", output="dense",
    head_dim="attention_head_size", count=("num_attention_heads",), width=("all_head_size",),
    layer=r"albert_layer_groups\.(\d+)", tail="albert", after=("output_dropout",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("albert",))
