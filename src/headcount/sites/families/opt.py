"""OPT: the classic decoder layout."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("OPTAttention",), query="q_proj", key="k_proj", value="v_proj", output="out_proj",
    count=("num_heads",), stack="decoder",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("opt",))
