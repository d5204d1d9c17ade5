"""ViT: image patches through an encoder."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("ViTAttention",), query="q_proj", key="k_proj", value="v_proj", output="o_proj",
    count=("num_attention_heads",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("vit",), stock=("num_attention_heads", "", "head_dim"))
