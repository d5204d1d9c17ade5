"""GPT-Neo: global and local layers of one class."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("GPTNeoSelfAttention", "GPTNeoFlashAttention2"),
    query="q_proj", key="k_proj", value="v_proj", output="out_proj",
    count=("num_heads",), stack="decoder", after=("resid_dropout",), cache="layer_past", cache_index="layer_id",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("gpt_neo",))
