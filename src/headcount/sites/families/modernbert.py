"""ModernBERT: one fused projection [Q|K|V]; the number of heads follows from its width."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("ModernBertAttention",), query="Wqkv", key="Wqkv", value="Wqkv", output="Wo",
    after=("out_drop",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("modernbert",))
