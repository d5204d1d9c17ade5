"""BART and the encoder-decoders that copy its attention, such as Whisper: one class for all three kinds."""

from headcount.sites.attention import Attention, Family

_NAMES = ("Bart", "Marian", "MBart", "M2M100", "Pegasus", "Whisper")

_ATTENTION = Attention(
    classes=tuple(f"{name}Attention" for name in _NAMES),
    query="q_proj", key="k_proj", value="v_proj", output="out_proj",
    count=("num_heads",), stack="flag", cross=("encoder_attn",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("bart", "marian", "mbart", "m2m_100", "pegasus", "whisper"))
