"""DistilBERT: four linear layers in one module."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("DistilBertSelfAttention",), query="q_lin", key="k_lin", value="v_lin", output="out_lin",
    head_dim="attention_head_size", count=("n_heads",), width=("dim",),
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("distilbert",))
