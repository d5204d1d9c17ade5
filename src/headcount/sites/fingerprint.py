"""The fingerprint of a model's weights: what makes a number traceable to one model."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, PreTrainedConfig

from headcount.hooks import config_of, configured_module
from headcount.sites.devices import stored

_OF_LOADING = {"transformers_version", "architectures", "dtype", "torch_dtype", "use_cache"}
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # bytes of a number -> the integers with as many


def weight_hash(model: nn.Module) -> str:
    """A hash of every parameter and saved buffer: names, types, shapes and bytes. Wrappers do not change it."""
    inner = configured_module(model)
    if len(inner.state_dict()) == len(model.state_dict()):  # a wrapper only puts a prefix before the names
        model = inner
    tensors = sorted((name, value) for name, value in model.state_dict().items() if isinstance(value, Tensor))
    with ThreadPoolExecutor() as threads:  # hashing large tensors releases the GIL
        hashes = threads.map(lambda item: tensor_hash(item[0], stored(model, *item)), tensors)
        return hashlib.sha256(b"".join(hashes)).hexdigest()[:40]


def config_hash(model: nn.Module, *, writes: bool = False) -> str:
    """A hash of the configuration: activations or norms may differ where the weights are the same.

    writes: whether texts are measured that the model generates. Its rules of generation are then in the hash, unless
    they are those that follow from the configuration.
    """
    config = config_of(model)
    if config is None or not hasattr(config, "to_dict"):
        return ""
    described = _described(config.to_dict())
    rules = _generation(model, config) if writes else None
    decisive = described if rules is None else [described, rules]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:40]


def _generation(model: nn.Module, config: PreTrainedConfig) -> object:
    """The rules of generation of a model; None if it has none, or those that follow from its configuration."""
    settings = getattr(configured_module(model), "generation_config", None)
    if not isinstance(settings, GenerationConfig):
        return None
    rules, usual = (
        _described(generation.to_dict()) for generation in (settings, GenerationConfig.from_model_config(config))
    )
    return None if rules == usual else rules


def _described(value: object) -> object:
    """Without private entries, versions and names, which say how a model was loaded and not what it computes."""
    if isinstance(value, dict):
        entries = {str(name): entry for name, entry in value.items() if name not in _OF_LOADING}
        return {name: _described(entry) for name, entry in entries.items() if not name.startswith("_")}
    if isinstance(value, (list, tuple)):
        return [_described(entry) for entry in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def model_seed(weights: str, seed: int) -> int:
    """The seed of random numbers for one model, whose `weight_hash` is given.

    The same model and seed give the same numbers. Two models get different ones for the same seed: what is random in
    the results of several models is then independent between them, as intervals over models require.
    """
    return int(hashlib.sha256(f"{weights} {seed}".encode()).hexdigest()[:12], 16)


def tensor_hash(name: str, tensor: Tensor) -> bytes:
    """A hash of one tensor: name, type, shape and bytes."""
    digest = hashlib.sha256(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
    if not tensor.is_meta and tensor.numel():
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.digest()


def row_hashes(weight_RK: Tensor, bias_R: Tensor | None = None) -> Tensor:
    """[R]: a hash of the bits of every row and its bias; the same on every device."""
    rows = weight_RK if bias_R is None else torch.cat([weight_RK, bias_R[:, None].to(weight_RK)], dim=1)
    bits = rows.detach().contiguous().view(_BITS[rows.dtype.itemsize]).long()
    keys = torch.randint(-(2**62), 2**62, (bits.shape[1],), generator=torch.Generator().manual_seed(0))
    return (bits * keys.to(bits.device)).sum(1)  # overflow wraps around: exact in any order
