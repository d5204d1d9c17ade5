"""CLIP: a text tower and a vision tower of one attention class."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("CLIPAttention",), query="q_proj", key="k_proj", value="v_proj", output="out_proj",
    count=("num_heads",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("clip",))
