"""T5 and mT5: layer 0 computes a relative position bias with a column per head; all layers of its stack use it."""

from headcount.sites.attention import Attention, Family

_ATTENTION = Attention(
    classes=("T5Attention", "MT5Attention"), query="q", key="k", value="v", output="o",
    head_dim="key_value_proj_dim", count=("n_heads",), width=("inner_dim",), shared_bias="t5", stack="flag",
    cross=("EncDecAttention",), layer=r"block\.(\d+)\.", weights=2, tail="t5",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("t5", "mt5"), stock=("num_heads", "", "d_kv"))
