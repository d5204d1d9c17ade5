"""Whisper: BART's layout on speech; the key projection has no bias."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("WhisperAttention",),
    query="q_proj",
    key="k_proj",
    value="v_proj",
    output="out_proj",
    count=("num_heads",),
    stack="flag",
    cross=("encoder_attn",),
)

FAMILY = Family(attentions=(_ATTENTION,), architectures=("whisper",))
