"""Llama and the decoders that share its layout: separate projections, grouped key/value heads, rotary positions."""

from headcount.sites.attention import Attention, Family

_NAMES = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma2", "Gemma3")

_ATTENTION = Attention(
    classes=tuple(f"{name}Attention" for name in _NAMES), query="q_proj", key="k_proj", value="v_proj", output="o_proj",
    groups="num_key_value_groups", stack="decoder",
)  # fmt: skip

FAMILY = Family(
    attentions=(_ATTENTION,),
    architectures=("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3"),
    stock=("num_attention_heads", "num_key_value_heads", "head_dim"),
)
