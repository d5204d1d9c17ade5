"""Running a model to measure it: eval mode, eager attention, a generated batch. Settings are restored afterwards."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from headcount.errors import ModelError

_BACKEND = "_attn_implementation_internal"
_COPIED = "_headcount_backend"  # attribute of modules while a block is open
_EXPERTS = "_experts_implementation_internal"  # of a config: the kernel of a mixture of experts


@contextmanager
def evaluating(model: nn.Module, *, gradients: bool = False) -> Iterator[None]:
    """Eval mode, no gradients and a fixed random seed inside the block. Each module's mode and the seed are restored.

    gradients: compute gradients with respect to masks and other inputs, but not to the model's parameters.
    """
    if gradients and any(parameter.is_inference() for parameter in model.parameters()):
        raise ModelError(
            f"{type(model).__name__} was created or changed inside torch.inference_mode, so it has no gradients. Load "
            "it outside of that block."
        )
    modes = [(module, module.training) for module in model.modules()]
    # Frozen only if needed: requires_grad decides which matrix product torch uses, which changes the last bit.
    trained = [parameter for parameter in model.parameters() if gradients and parameter.requires_grad]
    graphics = _graphics_cards(model)
    try:
        model.eval()
        for parameter in trained:
            parameter.requires_grad_(False)
        # inference mode of the caller would forbid gradients
        with torch.inference_mode(False), torch.set_grad_enabled(gradients), torch.random.fork_rng(devices=graphics):
            seed_generators(model, 0)  # models that sample (masked autoencoders) sample the same numbers every time
            yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter in trained:
            parameter.requires_grad_(True)


def _graphics_cards(model: nn.Module) -> list[int]:
    """The graphics cards that a model is on; each has its own random generator."""
    return sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})


class Draws:
    """The random numbers from here on: models that sample (masked autoencoders) draw the same ones `again`.

    Runs that are to be compared must not differ by what the model drew.
    """

    def __init__(self, model: nn.Module) -> None:
        cards = _graphics_cards(model)
        self._generators = [torch.default_generator, *(torch.cuda.default_generators[card] for card in cards)]
        self._states = [generator.get_state() for generator in self._generators]

    @property
    def taken(self) -> bool:
        """Whether some have been drawn."""
        return not all(map(torch.equal, (generator.get_state() for generator in self._generators), self._states))

    def again(self) -> None:
        """Let the next run draw the same numbers."""
        for generator, state in zip(self._generators, self._states, strict=True):
            generator.set_state(state)


def seed_generators(model: nn.Module, seed: int) -> None:
    """Seed the random generators of the devices that a model is on.

    For a model on the CPU that one alone: `torch.manual_seed` also changes those of all graphics cards, and records the
    caller's stack for each, which takes as long as a layer of a small model.
    """
    if all(parameter.device.type == "cpu" for parameter in model.parameters()):
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def eager_attention(model: nn.Module) -> AbstractContextManager[None]:
    """Use eager attention inside the block, the only backend that returns its probabilities."""
    return attention_backend(model, "eager")


@contextmanager
def eager_experts(model: nn.Module) -> Iterator[None]:
    """Compute mixtures of experts expert by expert inside the block, as plain matrix products."""
    configs = {id(config): config for _, config in _configs(model) if _EXPERTS in vars(config)}
    before = [(config, getattr(config, _EXPERTS)) for config in configs.values()]
    try:
        for config, _ in before:
            setattr(config, _EXPERTS, "eager")
        yield
    finally:
        for config, implementation in before:
            setattr(config, _EXPERTS, implementation)


@contextmanager
def full_precision(model: nn.Module) -> Iterator[None]:
    """Weights of half precision in float32 inside the block, to train them; rounded to their type afterwards.

    An update of bfloat16 by less than 1/256 of a weight is lost, and the second moments of Adam underflow in float16.
    """
    halves = (torch.float16, torch.bfloat16)
    tensors = [(each, each.dtype) for each in (*model.parameters(), *model.buffers()) if each.dtype in halves]
    try:
        for tensor, _ in tensors:
            tensor.data = tensor.data.float()
        yield
    finally:
        for tensor, dtype in tensors:
            tensor.grad = None
            tensor.data = tensor.data.to(dtype)


@contextmanager
def attention_backend(model: nn.Module, name: str) -> Iterator[None]:
    """Use this attention backend inside the block. Blocks may be left in any order: the last one entered decides.

    A copy of the model made inside the block has its own backend again after it.
    """
    holders = _configs(model)
    configs = {id(config): config for _, config in holders}
    changes: list[_BackendChange] = []
    for config in configs.values():
        _BackendChange(config, getattr(config, _BACKEND, None), changes).begin()
    for module, config in holders:
        module.__dict__.setdefault(_COPIED, _Copied(config))
    try:
        for change in changes:
            setattr(change.config, _BACKEND, name)
        yield
    finally:
        for change in changes:
            change.undo()
        for module, config in holders:
            if not any(change.config is config for change in _open_changes):
                module.__dict__.pop(_COPIED, None)


def _configs(model: nn.Module) -> list[tuple[nn.Module, PreTrainedConfig]]:
    """Each module that has a config, and that config."""
    return [
        (module, config)
        for module in model.modules()
        if isinstance(config := getattr(module, "config", None), PreTrainedConfig)
    ]


@dataclass(eq=False)
class _BackendChange:
    """Another attention backend in one config, for as long as a block is open."""

    config: PreTrainedConfig
    before: str | None
    block: list[_BackendChange]  # all changes of the block

    def begin(self) -> None:
        self.block.append(self)
        _open_changes.append(self)

    def undo(self) -> None:
        """Restore the backend, now or when the block ends that was entered next and is still open."""
        later = _open_changes[_open_changes.index(self) + 1 :]
        _open_changes.remove(self)
        following = next((change for change in later if change.config is self.config), None)
        if following is None:
            setattr(self.config, _BACKEND, self.before)
        else:
            following.before = self.before


_open_changes: list[_BackendChange] = []  # in the order in which their blocks were entered


class _Copied:
    """An attribute of a module with a config: if the module is copied, open blocks take in the config of the copy."""

    def __init__(self, config: PreTrainedConfig) -> None:
        self._config = config

    def __deepcopy__(self, memo: dict[int, Any]) -> _Copied:
        config = copy.deepcopy(self._config, memo)  # that of the copied module
        if not any(change.config is config for change in _open_changes):  # modules share a config
            for change in [change for change in _open_changes if change.config is self._config]:
                _BackendChange(config, change.before, change.block).begin()
        return _Copied(config)


def run(model: nn.Module, batch: Mapping[str, Tensor], *, synthetic: bool) -> Any:
    """The model's output. Raises a clear error if the generated batch does not fit the model."""
    try:
        return model(**batch)
    except Exception as error:
        if not synthetic:
            raise
        raise ModelError(
            f"{type(model).__name__} does not run on the test batch that headcount generates "
            f"({type(error).__name__}: {error}). Pass a batch of your own with batch=."
        ) from error
