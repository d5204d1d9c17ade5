"""Attention: the layout of heads in one class of attention modules. Data only; knows no live model.

A family file fills one of these per attention class. `sites` reads it to find heads, `surgery` to cut them out.
Names are relative to the attention module; a leading `..` means its parent, as in BERT's `..output.dense`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from torch import nn

# What an attention module without heads returns around the bias of its output projection.
#   plain    output and weights
#   context  the heads' output, of width 0, and weights: the projection is outside
#   t5       output, position bias and weights
#   bloom    output plus residual, and weights
#   albert   normed sum of input and output, and weights
Tail = Literal["plain", "context", "t5", "bloom", "albert"]

# A per-head position bias computed once and passed to every layer: each pruned layer selects its heads from it.
SharedBias = Literal["", "t5", "mpnet", "bloom"]


@dataclass(frozen=True)
class Attention:
    """The layout of one attention class."""

    classes: tuple[str, ...]
    query: str
    key: str
    value: str  # the same name as `query` or `key` if projections are fused: rows [Q|K|V]
    output: str
    interleaved: bool = False  # fused rows are ordered by head: [q0 k0 v0 q1 k1 v1 ...]
    entry: str = ""  # the module whose input is the concatenated heads, if it is not `output`

    head_dim: str = "head_dim"  # attribute with the head size
    count: tuple[str, ...] = ()  # attributes with the number of heads
    width: tuple[str, ...] = ()  # attributes with heads x head size
    groups: str = ""  # attribute with the number of query heads per key/value head
    kv_count: tuple[str, ...] = ()  # attributes with the number of key/value heads
    config_count: tuple[str, ...] = ()  # config entries with the number of heads that `forward` reads
    extra: tuple[str, ...] = ()  # further projections with one block of rows per head, if present
    shared_bias: SharedBias = ""

    stack: Literal["encoder", "decoder", "flag"] = "encoder"  # flag: the module's own `is_decoder`
    cross: tuple[str, ...] = ()  # path components that mark cross attention
    layer: str = ""  # regex whose group is the layer in the module's path; else the path's last number

    weights: int = 1  # index of the attention probabilities in the module's output
    ask_weights: bool = False  # they are returned only with `output_attentions=True`

    tail: Tail = "plain"
    after: tuple[str, ...] = ()  # modules that run after the output projection
    cache: str = "past_key_values"  # argument that carries the key/value cache
    cache_index: str = "layer_idx"  # attribute with the module's index in the cache
    keys: str = "key_value_states"  # argument with the states that cross-attention attends to

    obstacle: str = ""  # reason why heads can be masked but not removed
    unsupported: Callable[[nn.Module], str | None] | None = None  # reason why heads cannot even be masked

    def to_plain(self) -> dict[str, Any]:
        """The layout as plain JSON, for models that no family describes."""
        return {name: value for name, value in asdict(self).items() if name != "unsupported"}

    @classmethod
    def from_plain(cls, data: object) -> Attention:
        """The layout from JSON. Raises ValueError for unknown fields or wrong types."""
        defaults = {field.name: getattr(_ANY, field.name) for field in fields(cls) if field.name != "unsupported"}
        if not isinstance(data, Mapping) or set(data) != set(defaults):
            raise ValueError("an attention layout has the fields " + ", ".join(sorted(defaults)))
        read: dict[str, Any] = {}
        for name, example in defaults.items():
            value = tuple(data[name]) if isinstance(data[name], list) else data[name]
            items = value if isinstance(value, tuple) else ()
            if type(value) is not type(example) or not all(isinstance(item, str) for item in items):
                raise ValueError(f"the attention layout gives {name} the value {data[name]!r:.80}")
            read[name] = value
        return cls(**read)

    @property
    def projections(self) -> dict[str, str]:
        """Projection name -> the roles (of "qkv") whose rows it holds, in order."""
        names = dict.fromkeys((self.query, self.key, self.value))
        roles = {"q": self.query, "k": self.key, "v": self.value}
        return {name: "".join(role for role, owner in roles.items() if owner == name) for name in names}


_ANY = Attention(classes=(), query="", key="", value="", output="")


@dataclass(frozen=True)
class Family:
    """One architecture family: its attention classes, and how a uniformly pruned config is written."""

    attentions: tuple[Attention, ...]
    architectures: tuple[str, ...]  # Hugging Face model types that the contract tests cover
    # config entries that state heads, key/value heads and head size, where stock code reads all three
    stock: tuple[str, str, str] | None = None
