"""Phi-3: fused [Q|K|V] with grouped key/value heads; `forward` reads the number of heads from the config."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("Phi3Attention",), query="qkv_proj", key="qkv_proj", value="qkv_proj", output="o_proj",
    groups="num_key_value_groups", kv_count=("num_key_value_heads",), config_count=("num_attention_heads",),
    stack="decoder",
)  # fmt: skip

FAMILY = Family(
    attentions=(_ATTENTION,),
    architectures=("phi3",),
    stock=("num_attention_heads", "num_key_value_heads", "head_dim"),
)
