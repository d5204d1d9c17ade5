"""The architecture name and the number of heads per layer that a GGUF file declares for a model.

According to the source code of llama.cpp, `deci` supports a different number of heads in every layer and layers
without heads, except for the first layer. `openelm` supports a different number of heads, but no empty layers. All
other architectures use the numbers of the first layer for all layers. Every key/value head serves the same number of
consecutive query heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel

from headcount.exports.blocks import Block, block, costs, same_everywhere
from headcount.exports.runtime import Obstacle
from headcount.selection.shape import Shape
from headcount.sites.locate import locate
from headcount.sites.site import Sites

# Model class -> architecture of llama.cpp for the unpruned model.
_ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}
_PAIRED = ("llama", "deci")  # rotary embeddings rotate adjacent dimensions; the others rotate the two halves of a head
_ROPE_TYPES = ("default", "linear", "llama3")  # fixed frequencies, which a table of factors can express


@dataclass(frozen=True)
class Layout:
    """The layers of a model as a GGUF file declares them.

    Attributes:
        architecture: Architecture name of llama.cpp.
        blocks: The attention of each layer.
        context: Maximum context length in tokens.
        notes: Costs of the format for this model.
    """

    architecture: str
    blocks: tuple[Block, ...]
    context: int
    notes: tuple[str, ...]

    @property
    def paired(self) -> bool:
        return self.architecture in _PAIRED

    @property
    def uneven(self) -> bool:
        """Whether the number of heads is declared per layer."""
        return self.architecture in ("deci", "openelm")


def obstacle(model: PreTrainedModel) -> Obstacle | None:
    """Return why llama.cpp does not support a model, or None if it does."""
    name = type(model).__name__
    if name not in _ARCHITECTURES:
        return Obstacle(f"{name} is not among {', '.join(_ARCHITECTURES)}", "No other class is written as GGUF")
    config: Any = model.config
    if config.hidden_act != "silu":
        return Obstacle(f"its activation is {config.hidden_act}", "llama.cpp computes silu in these architectures")
    if rope_type(config) not in _ROPE_TYPES:
        return Obstacle(
            f"its rotary positions are scaled by {rope_type(config)!r}", f"Supported are {', '.join(_ROPE_TYPES)}"
        )
    if not isinstance(choice := _choose(model, locate(model)), str):
        return choice
    return None


def shape(model: PreTrainedModel) -> Shape:
    """Return the constraint on the heads: groups of equal size, and the limits of `deci` and `openelm`."""
    if _ARCHITECTURES.get(type(model).__name__) != "qwen3":
        return Shape(groups="even", at_least_first=1)  # deci
    if model.config.tie_word_embeddings:
        return Shape(groups="even", at_least=1)  # openelm
    return Shape(rule="uniform", unit="group", at_least=1)


def rope_type(config: PreTrainedConfig) -> str:
    return str((config.rope_parameters or {}).get("rope_type", "default"))


def layout(model: PreTrainedModel) -> Layout:
    """Return the layout of a model that has no obstacle."""
    sites, config = locate(model), model.config
    architecture = _choose(model, sites)
    if isinstance(architecture, Obstacle):
        raise ValueError(str(architecture))
    blocks = tuple(block(site, may_be_empty=architecture == "deci" and site.layer > 0) for site in sites)
    context, window = int(config.max_position_embeddings), _window(config)
    notes = costs(sites, blocks)
    if window is not None and window < context:
        notes.append(f"llama.cpp reads {architecture} without a sliding window: the context is stated as {window}")
        context = window
    return Layout(architecture, blocks, context, tuple(notes))


def _choose(model: PreTrainedModel, sites: Sites) -> str | Obstacle:
    """Return the architecture of llama.cpp that supports the heads of a model."""
    architecture = _ARCHITECTURES[type(model).__name__]
    scaled = rope_type(model.config) != "default"
    output_bias = any(getattr(site.output, "bias", None) is not None for site in sites)
    if architecture == "qwen3":
        return _choose_qwen3(model, sites, scaled=scaled)
    if architecture == "qwen2":
        # No output bias, no scaled rotary embeddings, and heads x head dimension must equal the hidden size.
        full = all(site.num_heads * site.head_dim == model.config.hidden_size for site in sites)
        return architecture if full and same_everywhere(sites) and not (output_bias or scaled) else "deci"
    return architecture if same_everywhere(sites) else "deci"


def _choose_qwen3(model: PreTrainedModel, sites: Sites, *, scaled: bool) -> str | Obstacle:
    projections = ("q_proj", "k_proj", "v_proj", "o_proj")
    if any(getattr(site.module, name).bias is not None for site in sites for name in projections):
        return Obstacle(
            "llama.cpp reads no biases in the attention of Qwen3", "Compensate without a new bias (no add_bias)"
        )
    if scaled:
        return Obstacle("llama.cpp reads no scaled rotary positions in Qwen3", "Set rope_type to default")
    if same_everywhere(sites):
        return "qwen3"
    if not model.config.tie_word_embeddings:
        return Obstacle(
            "different numbers of heads per layer fit Qwen3 only where input and output embeddings are tied",
            "Prune every layer alike, whole groups at a time",
        )
    return "openelm"


def _window(config: PreTrainedConfig) -> int | None:
    """Return the size of the sliding window in tokens, or None if no layer has one."""
    kinds = getattr(config, "layer_types", None)
    slides = "sliding_attention" in kinds if kinds else True
    window = getattr(config, "sliding_window", None)
    return int(window) if slides and window else None
