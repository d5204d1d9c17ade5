"""Causality: whether the tokens of a model attend to earlier tokens only. Tested by a run, not read off the config.

The name of an architecture does not say it: a config may make a decoder attend in both directions (`is_causal` of
Llama, `use_bidirectional_attention` of Gemma 3), and Gemma 2 ignores the same entry.
Shapes: B batch, T tokens, D width.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from headcount.errors import UnknownArchitecture
from headcount.hooks import configured_module, is_encoder_decoder, probes_paused
from headcount.sites.devices import compute_device
from headcount.sites.inputs import example_batch
from headcount.sites.locate import locate
from headcount.sites.running import evaluating

_SWITCHES = ("is_decoder", "is_causal", "use_bidirectional_attention")  # entries of configs and modules
_tested: WeakKeyDictionary[nn.Module, tuple[object, bool]] = WeakKeyDictionary()  # switches, verdict


def is_causal(model: nn.Module, kind: str = "decoder") -> bool:
    """Whether a token attends to earlier tokens only, in self-attention of this kind.

    An encoder is not. A decoder is run once on a few tokens: if another last token changes the states of earlier ones,
    it is not either. Of an encoder-decoder the decoder is.
    """
    if is_encoder_decoder(model):
        return kind == "decoder"
    kinds = _kinds(model)
    if kind == "encoder" or ("encoder" in kinds and "decoder" not in kinds):  # even if its heads only look back
        return False
    module = configured_module(model)
    switches = _switches(module)
    if module not in _tested or _tested[module][0] != switches:
        verdict = _seen_in_a_run(module)
        _tested[module] = switches, _by_config(module) if verdict is None else verdict
    return _tested[module][1]


def _kinds(model: nn.Module) -> tuple[str, ...]:
    """Kinds of attention; none of a model that is not recognised, such as an exported one."""
    try:
        return tuple(locate(model).kinds)
    except UnknownArchitecture:
        return ()


def _switches(module: nn.Module) -> object:
    config = getattr(module, "config", None)
    entries = [getattr(config, name, None) for name in _SWITCHES]
    return entries, [[part.__dict__.get(name) for name in _SWITCHES] for part in module.modules()]


def _seen_in_a_run(module: nn.Module) -> bool | None:
    """None if the model cannot be run, or gives no states of tokens."""
    if compute_device(module).type == "meta":
        return None
    base = getattr(module, "base_model", module)
    try:
        batch = example_batch(module, batch=4, length=8, padded=False)
        changed_BT = batch["input_ids"].clone()
        changed_BT[:, -1] = batch["input_ids"][:, -1].roll(1)
        with probes_paused(), evaluating(module):
            states = [_states(base(**{**batch, "input_ids": ids_BT})) for ids_BT in (batch["input_ids"], changed_BT)]
    except Exception:  # an unknown model may fail in any way
        return None
    before_BTD, after_BTD = (state_BTD[:, :-1].double() for state_BTD in states)
    if before_BTD.shape[:2] != (4, 7):
        return None
    moved_BT = (after_BTD - before_BTD).norm(dim=-1) / before_BTD.norm(dim=-1).clamp_min(1e-12)
    # Other tokens are computed alike, but not in the same order where experts share them out.
    return bool(moved_BT.max() <= min(64 * torch.finfo(states[0].dtype).eps, 0.02))


def _states(output: Any) -> Tensor:
    states_BTD: Tensor = output[0]
    return states_BTD


def _by_config(module: nn.Module) -> bool:
    config = getattr(module, "config", None)
    return "encoder" not in _kinds(module) and getattr(config, "is_causal", None) is not False
