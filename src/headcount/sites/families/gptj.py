"""GPT-J: rotary positions, attention and feed-forward side by side."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("GPTJAttention", "GPTJFlashAttention2"), query="q_proj", key="k_proj", value="v_proj", output="out_proj",
    count=("num_attention_heads",), stack="decoder", after=("resid_dropout",), cache="layer_past",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("gptj",))
