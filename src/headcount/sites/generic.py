"""Heads of an architecture that no family describes: guessed from names and confirmed by a test run.

The test: attention probabilities times values, head by head, must be what enters the output projection.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.hooks import Hooks, config_of, is_encoder_decoder
from headcount.sites.attention import Attention
from headcount.sites.inputs import example_batch
from headcount.sites.projection import relative, relative_path, width_in
from headcount.sites.running import eager_attention, evaluating

_QUERY = ("q_proj", "query", "q", "q_lin", "query_proj", "wq", "to_q", "linear_q")
_KEY = ("k_proj", "key", "k", "k_lin", "key_proj", "wk", "to_k", "linear_k")
_VALUE = ("v_proj", "value", "v", "v_lin", "value_proj", "wv", "to_v", "linear_v")
_FUSED = ("qkv", "qkv_proj", "Wqkv", "query_key_value", "c_attn", "in_proj", "W_pack")
_OUTPUT = (
    "o_proj", "out_proj", "o", "out_lin", "dense", "wo", "Wo", "c_proj", "proj", "projection_layer", "linear_out",
    "..output.dense",
)  # fmt: skip
_QUERY_OR_FUSED = frozenset(_QUERY + _FUSED)
_HEAD_DIM = ("head_dim", "attention_head_size", "head_size", "key_value_proj_dim", "d_head", "dim_head")
_COUNT = ("num_heads", "num_attention_heads", "n_heads", "n_head")
_KV_COUNT = ("num_key_value_heads", "num_kv_heads")
_WIDTH = ("all_head_size", "inner_dim", "split_size")
_CROSS = ("encoder_attn", "crossattention", "cross_attn", "cross_attention", "EncDecAttention")

Found = tuple[Attention, str, nn.Module]

_confirmed: WeakKeyDictionary[nn.Module, Attention | str] = WeakKeyDictionary()


def find(model: nn.Module, claimed: Iterable[nn.Module] = ()) -> tuple[list[Found], list[str]]:
    """The attention modules outside `claimed` whose heads a test run confirms, and why others are refused."""
    inside = {part for module in claimed for part in module.modules()}
    guesses, refused = [], []
    for path, module in model.named_modules():
        guess = None if module in inside else _guess(model, path, module)
        if isinstance(guess, Attention):
            guesses.append((guess, path, module))
        elif guess is not None:
            refused.append(_about(path, module, guess))
    if any(module not in _confirmed for _, _, module in guesses):
        _confirm(model, guesses)
    modules = []
    for _, path, module in guesses:
        verdict = _confirmed[module]
        if isinstance(verdict, Attention):
            modules.append((verdict, path, module))
        else:
            refused.append(_about(path, module, verdict))
    return modules, refused


def _about(path: str, module: nn.Module, reason: str) -> str:
    return f"{path} ({type(module).__name__}): {reason}"


def _guess(model: nn.Module, path: str, module: nn.Module) -> Attention | str | None:
    """A layout guessed from the names of the module's projections and attributes, or the reason why there is none."""
    if module._modules.keys().isdisjoint(_QUERY_OR_FUSED):  # as in most modules of a model
        return None
    fused = _first(module, _FUSED)
    query, key, value = (fused or _first(module, names) for names in (_QUERY, _KEY, _VALUE))
    if not (query and key and value):
        return None
    output = next((name for name in _OUTPUT if _is_linear(_at(model, path, name))), None)
    head_dim = next((name for name in _HEAD_DIM if isinstance(getattr(module, name, None), int)), None)
    if not output or not head_dim:
        return f"it has no {'output projection' if not output else 'head size'} under a usual name"
    if width_in(relative(model, path, output)) % getattr(module, head_dim):
        return "its output projection does not take a whole number of heads"
    parameters = inspect.signature(module.forward).parameters
    return Attention(
        classes=(type(module).__name__,), query=query, key=key, value=value, output=output, head_dim=head_dim,
        count=_present(module, _COUNT), width=_present(module, _WIDTH),
        groups="num_key_value_groups" if hasattr(module, "num_key_value_groups") else "",
        kv_count=_present(module, _KV_COUNT), stack=_stack(model, path, module), cross=_CROSS,
        tail="context" if output.startswith("..") else "plain",
        cache="layer_past" if "layer_past" in parameters else "past_key_values",
        keys="encoder_hidden_states" if "encoder_hidden_states" in parameters else "key_value_states",
    )  # fmt: skip


def _stack(model: nn.Module, path: str, module: nn.Module) -> Literal["encoder", "decoder", "flag"]:
    if hasattr(module, "is_decoder"):
        return "flag"
    if is_encoder_decoder(model):
        return "decoder" if "decoder" in path.split(".") else "encoder"
    causal = getattr(module, "is_causal", getattr(config_of(model), "causal", None))  # XLM and Flaubert have the second
    writes = hasattr(model, "can_generate") and model.can_generate()  # type: ignore[operator]
    return "decoder" if causal or (causal is None and writes) else "encoder"


def _confirm(model: nn.Module, guesses: list[Found]) -> None:
    """Run the model once on noise and compare the input of each projection with probabilities times values."""
    seen: dict[nn.Module, _Seen] = {}
    try:
        with evaluating(model), eager_attention(model), Hooks() as hooks:
            for attention, path, module in guesses:
                seen[module] = _Seen(model, attention, path, module, hooks)
            model(**example_batch(model))
    except Exception as error:  # an unknown model may fail in any way; none may count as confirmed
        for _, _, module in guesses:
            _confirmed[module] = f"the test run failed with {type(error).__name__}: {error}"
        return
    for _, _, module in guesses:
        _confirmed[module] = seen[module].verdict()


class _Seen:
    """Tensors of one module in the test run."""

    def __init__(self, model: nn.Module, attention: Attention, path: str, module: nn.Module, hooks: Hooks) -> None:
        self.attention = attention
        self.module = module
        self.heads = width_in(relative(model, path, attention.output)) // getattr(module, attention.head_dim)
        self.values: Tensor | None = None  # [B, K, rows] as the value projection gives them
        self.returned: tuple[Any, ...] = ()
        self.entered: dict[str, Tensor] = {}  # name of a module -> its input [B, Q, width]
        hooks.change_output(getattr(module, attention.value), partial(setattr, self, "values"))
        if "output_attentions" in inspect.signature(module.forward).parameters:
            hooks.set_argument(module, "output_attentions", True)
            self.attention = replace(attention, ask_weights=True)
        hooks.change_output(module, self._see_returned)
        children = [name for name, child in module.named_children() if name not in attention.projections]
        for name in dict.fromkeys((attention.output, *children)):
            hooks.see_input(model.get_submodule(relative_path(path, name)), partial(self.entered.__setitem__, name))

    def _see_returned(self, output: object) -> None:
        self.returned = output if isinstance(output, tuple) else (output,)

    def verdict(self) -> Attention | str:
        """The confirmed layout, or the reason why there is none."""
        weights = next((i for i, item in enumerate(self.returned) if self._is_probabilities(item)), None)
        if self.values is None or weights is None:
            return "it does not return its attention probabilities"
        probabilities_BHQK = self.returned[weights]
        for interleaved, values_BKHD in self._readings():
            if values_BKHD.shape[:2] != (probabilities_BHQK.shape[0], probabilities_BHQK.shape[-1]):
                continue  # values of several streams or windows
            heads_BQHD = torch.einsum("bhqk,bkhd->bqhd", probabilities_BHQK.float(), values_BKHD.float())
            expected = heads_BQHD.flatten(-2)
            atol = _tolerance(values_BKHD) * float(expected.abs().max())
            for name, entered in self.entered.items():
                if entered.shape == expected.shape and torch.allclose(entered.float(), expected, rtol=0, atol=atol):
                    return self._settled(name, interleaved, weights)
        return "what enters its output projection is not its heads side by side"

    def _is_probabilities(self, item: object) -> bool:
        if not isinstance(item, Tensor) or item.dim() != 4 or item.shape[1] != self.heads:
            return False
        # The sum is below 1 if a sink takes a share, or if a query may attend to nothing.
        return bool((item >= 0).all() and (item.float().sum(-1) <= 1 + _tolerance(item)).all())

    def _readings(self) -> Iterator[tuple[bool, Tensor]]:
        """The value heads [B, K, H, D] for each possible layout of their rows."""
        head_dim = getattr(self.module, self.attention.head_dim)
        values: Any = self.values
        if values.dim() != 3 or values.shape[-1] % head_dim:
            return
        roles = self.attention.projections[self.attention.value]
        if "q" in roles and values.shape[-1] == 3 * self.heads * head_dim:
            yield True, values.unflatten(-1, (-1, 3, head_dim))[..., 2, :]
        if "q" in roles:
            kv_heads = (values.shape[-1] // head_dim - self.heads) // 2
            values = values[..., (self.heads + kv_heads) * head_dim :]
        values_BKHD = values.unflatten(-1, (-1, head_dim))
        if self.heads % values_BKHD.shape[-2] == 0:
            yield False, values_BKHD.repeat_interleave(self.heads // values_BKHD.shape[-2], dim=-2)

    def _settled(self, entry: str, interleaved: bool, weights: int) -> Attention:
        obstacle = _obstacle(self.module, self.attention)
        if entry != self.attention.output:
            obstacle = (
                f"{entry} normalises all heads together before the output projection: without some, the others change"
            )
        entry = "" if entry == self.attention.output else entry
        return replace(self.attention, entry=entry, interleaved=interleaved, weights=weights, obstacle=obstacle)


def _tolerance(tensor: Tensor) -> float:
    """Largest rounding error of a weighted mean in the tensor's data type."""
    return max(1e-3, 8 * torch.finfo(tensor.dtype).eps)


def _obstacle(module: nn.Module, attention: Attention) -> str:
    """A part of the module besides the projections that depends on the number of heads, if any."""
    head_dim = getattr(module, attention.head_dim)
    inside = {*attention.projections, attention.output}
    for name, child in module.named_children():
        sizes = [parameter.numel() for parameter in child.parameters()]
        if name in inside or not sizes:
            continue
        if "norm" in type(child).__name__.lower() and max(sizes) <= head_dim:
            continue  # one norm for all heads does not depend on their number
        if "norm" in type(child).__name__.lower():
            return f"{name} normalises over all heads together: without some, the others change"
        return f"headcount does not know how the parameters of {name} belong to heads"
    parameters = [name for name, _ in module.named_parameters(recurse=False)]
    return f"headcount does not know how the parameter {parameters[0]} belongs to heads" if parameters else ""


def _first(module: nn.Module, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if _is_linear(module._modules.get(name))), None)


def _present(module: nn.Module, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if isinstance(getattr(module, name, None), int))


def _is_linear(module: object) -> bool:
    return isinstance(module, nn.Linear | Conv1D) or (isinstance(module, nn.Module) and hasattr(module, "in_features"))


def _at(model: nn.Module, path: str, name: str) -> nn.Module | None:
    try:
        return relative(model, path, name)
    except AttributeError:
        return None
