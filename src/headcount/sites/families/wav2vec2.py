"""Wav2Vec2: BART's layout on raw speech, encoder only."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("Wav2Vec2Attention",), query="q_proj", key="k_proj", value="v_proj", output="out_proj",
    count=("num_heads",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("wav2vec2",))
