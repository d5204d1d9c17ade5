"""BERT and its close relatives: query, key and value inside the module, the output projection beside it."""

from headcount.sites.attention import Attention, Family

_NAMES = ("Bert", "Roberta", "XLMRoberta", "Electra")

_ATTENTION = Attention(
    classes=tuple(f"{name}{part}Attention" for name in _NAMES for part in ("Self", "Cross")),
    query="query", key="key", value="value", output="..output.dense",
    head_dim="attention_head_size", count=("num_attention_heads",), width=("all_head_size",), stack="flag",
    cross=("crossattention",), tail="context", keys="encoder_hidden_states",
)  # fmt: skip

FAMILY = Family(attentions=(_ATTENTION,), architectures=("bert", "roberta", "xlm-roberta", "electra"))
