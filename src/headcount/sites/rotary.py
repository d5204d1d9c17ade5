"""Rotary positions that depend on the longest text of a batch.

transformers computes two types of scaled positions from the width of the batch: `longrope` has other frequencies for
all texts as soon as one is longer than its limit, `dynamic` has frequencies of its own for each width above its limit,
and keeps those of the widest batch until one below the limit comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

_LIMIT = "original_max_position_embeddings"  # of longrope, in the config; dynamic has it in the module


@dataclass(frozen=True)
class Scaling:
    """How rotary positions are scaled.

    Attributes:
        name: `longrope` or `dynamic`.
        limit: Width of a batch, in tokens, up to which the frequencies do not depend on it.
    """

    name: str
    limit: int

    def frequencies(self, width: int) -> int:
        """A number of the frequencies in a batch of this width: equal if the frequencies are."""
        return int(width > self.limit) if self.name == "longrope" else max(width, self.limit)


def scalings(model: nn.Module) -> list[Scaling]:
    """The scalings of a model that depend on the width of the batch, by limit."""
    distinct = set()
    for module, layer_type, rope_type in _rotary(model):
        if rope_type == "longrope":
            parameters = module.config.rope_parameters
            parameters = parameters if layer_type is None else parameters[layer_type]
            distinct.add(Scaling(rope_type, int(parameters[_LIMIT])))
        elif "dynamic" in rope_type:
            distinct.add(Scaling("dynamic", int(module.original_max_seq_len)))
    return sorted(distinct, key=lambda scaling: (scaling.limit, scaling.name))


def widest_alike(model: nn.Module, length: int, width: int) -> int:
    """The largest width up to this one, at which a text of this length has the positions that it has alone."""
    scaled = scalings(model)
    widths = sorted({width, *(scaling.limit for scaling in scaled if length < scaling.limit < width)}, reverse=True)
    alike = (each for each in widths if all(s.frequencies(each) == s.frequencies(length) for s in scaled))
    return next(alike, length)


def forget_widest(model: nn.Module) -> None:
    """Give `dynamic` positions the frequencies of a model that has not run: what runs next depends on itself alone."""
    for module, layer_type, rope_type in _rotary(model):
        prefix = "" if layer_type is None else f"{layer_type}_"
        widest = getattr(module, f"{prefix}max_seq_len_cached", module.original_max_seq_len)
        if "dynamic" in rope_type and int(widest) != module.original_max_seq_len:
            first = getattr(module, f"{prefix}original_inv_freq").to(getattr(module, f"{prefix}inv_freq").device)
            module.register_buffer(f"{prefix}inv_freq", first.clone(), persistent=False)
            setattr(module, f"{prefix}max_seq_len_cached", module.original_max_seq_len)


def _rotary(model: nn.Module) -> Iterator[tuple[Any, str | None, str]]:
    """Each module of rotary positions with its type; with each type of layers, if it computes them by these."""
    for module in model.modules():
        if hasattr(module, "rope_type") and hasattr(module, "original_max_seq_len"):
            types = module.rope_type if isinstance(module.rope_type, dict) else {None: module.rope_type}
            yield from ((module, layer_type, str(rope_type)) for layer_type, rope_type in types.items())
