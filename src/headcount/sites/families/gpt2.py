"""GPT-2: transposed (Conv1D) weights, fused [Q|K|V]; cross-attention has a separate query and fused [K|V]."""

from dataclasses import replace

from headcount.sites.attention import Attention, Family

_SELF = Attention(
    classes=("GPT2Attention",), query="c_attn", key="c_attn", value="c_attn", output="c_proj",
    count=("num_heads",), width=("split_size",), stack="decoder", cross=("crossattention",), after=("resid_dropout",),
    keys="encoder_hidden_states",
)  # fmt: skip
_CROSS = replace(_SELF, query="q_attn")  # only cross attention has a `q_attn`: tried first

FAMILY = Family(attentions=(_CROSS, _SELF), architectures=("gpt2",))
