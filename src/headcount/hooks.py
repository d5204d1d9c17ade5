"""Hooks: functions attached to the modules of a live model inside a block. The only file that registers hooks.

Knows modules, not heads. All hooks are registered in a `Hooks` block, which removes them also after an exception.
"""

from __future__ import annotations

import copy
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from headcount.errors import UsageError

# [.., width] -> the same or another tensor of that shape; None leaves the input as it is
InputFunction = Callable[[Tensor], Tensor | None]
# what the module returned -> what it should return instead; None leaves it
OutputFunction = Callable[[Any], Any]


# id of every hook that is registered now (torch gives each its own) -> the thread that registered it
_attached: dict[int, int] = {}
_pause = threading.local()  # its attribute `on`: whether functions of this thread do nothing now


class Hooks:
    """A block within which functions are attached to modules.

    Functions that change an input run before those that only read it, whatever the order they were attached in: a tap
    sees the input of the output projection after masking. A copy of the model made inside the block has its functions
    too; after the block they do nothing there either.
    """

    def __init__(self, model: nn.Module | None = None) -> None:
        """model: the model to attach functions to. Raises if another thread has functions attached to it."""
        if model is not None:
            _check_thread(model)
        self._handles = ExitStack()
        self.ended = False

    @property
    def active(self) -> bool:
        """Whether the functions of this block run now, in this thread."""
        return not self.ended and not getattr(_pause, "on", False)

    def change_input(self, module: nn.Module, function: InputFunction) -> None:
        """Attach a function that replaces the module's first positional input."""
        self.change_input_of(module, lambda _, tensor: function(tensor))

    def change_input_of(self, module: nn.Module, function: Callable[[nn.Module, Tensor], Tensor | None]) -> None:
        """Like `change_input`; the function also gets the module that runs, which may be of a copy of the model."""
        self._before(module, _on_input(function), prepend=True)

    def see_input(self, module: nn.Module, function: InputFunction) -> None:
        """Attach a function that reads the module's first positional input, after all changes.

        If the function returns a tensor (of the same values), it is passed on, so that gradients flow through it.
        """
        self._before(module, _on_input(lambda _, tensor: function(tensor)))

    def see_call(self, module: nn.Module, function: Callable[[], None]) -> None:
        """Attach a function that is called before the module runs."""
        self.see_module(module, lambda _: function())

    def see_module(self, module: nn.Module, function: Callable[[nn.Module], None]) -> None:
        """Like `see_call`; the function gets the module that runs, which may be that of a copy of the model."""
        self._before(module, lambda called, *_: function(called))

    def see_arguments(self, module: nn.Module, function: Callable[[Mapping[str, Any]], None]) -> None:
        """Attach a function that reads the arguments of each call by name, positional ones too."""
        signature = inspect.signature(module.forward)
        further = [name for name, each in signature.parameters.items() if each.kind is each.VAR_KEYWORD]

        def hook(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
            arguments = signature.bind_partial(*positional, **named).arguments
            for name in further:
                arguments.update(arguments.pop(name, {}))
            function(arguments)

        self._before(module, hook, with_kwargs=True)

    def see_end(self, module: nn.Module, function: Callable[[], None]) -> None:
        """Attach a function that is called after the module has run, not if it raised."""
        self.change_output(module, lambda _: function())

    def set_argument(self, module: nn.Module, name: str, value: object) -> None:
        """Set an argument of every call of the module, whether the caller passes it by position or by name."""
        self.change_argument(module, name, lambda _: value)

    def change_argument(self, module: nn.Module, name: str, function: Callable[[Any], Any]) -> None:
        """Attach a function that replaces an argument (None if the caller leaves it out), positional or by name."""
        signature = inspect.signature(module.forward)

        def hook(
            _: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]
        ) -> tuple[tuple[Any, ...], dict[str, Any]]:
            if name not in signature.parameters:  # it is one of **options
                return positional, {**named, name: function(named.get(name))}
            call = signature.bind_partial(*positional, **named)
            call.arguments[name] = function(call.arguments.get(name))
            return call.args, call.kwargs

        self._before(module, hook, with_kwargs=True)

    def change_output(self, module: nn.Module, function: OutputFunction) -> None:
        """Attach a function of the module's output; if it returns a value, that is returned instead."""

        def hook(_: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
            return function(output)

        self._keep(module.register_forward_hook(self._until_end(hook)))

    def replace(self, module: nn.Module, function: Callable[..., Any]) -> None:
        """Run `function` instead of the module's forward; hooks on the module still run."""
        replacement = _Replacement(self, module, function, module.__dict__.get("forward"))
        module.__dict__["forward"] = replacement
        self._handles.callback(replacement.remove)

    def _before(self, module: nn.Module, hook: Callable[..., Any], **options: bool) -> None:
        self._keep(module.register_forward_pre_hook(self._until_end(hook), **options))

    def _keep(self, handle: torch.utils.hooks.RemovableHandle) -> None:
        self._handles.callback(handle.remove)
        _attached[handle.id] = threading.get_ident()
        self._handles.callback(_attached.pop, handle.id, None)

    def _until_end(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The hook, which does nothing after the block: copies of the model share it."""

        def guarded(*positional: Any, **named: Any) -> Any:
            return hook(*positional, **named) if self.active else None

        return guarded

    def __enter__(self) -> Self:
        forget_compiled_code()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        self._handles.close()
        forget_compiled_code()


class _Replacement:
    """What runs instead of a module's forward, until the block ends. A copy of the module gets one of its own."""

    def __init__(self, hooks: Hooks, module: nn.Module, function: Callable[..., Any], before: Any) -> None:
        """before: the forward that the module itself has, not its class; another block may have replaced it."""
        self._hooks, self._module, self._function, self._before = hooks, module, function, before

    def __call__(self, *positional: Any, **named: Any) -> Any:
        if self._hooks.active:
            return self._function(*positional, **named)
        if self._before is not None:
            return self._before(*positional, **named)
        return type(self._module).forward(self._module, *positional, **named)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Replacement:
        """Copied along with the module, whose copy deepcopy has registered by then."""
        module = memo.get(id(self._module), self._module)
        return _Replacement(self._hooks, module, self._function, copy.deepcopy(self._before, memo))

    def remove(self) -> None:
        """Restore what was there before. A block that was entered later and is still open keeps its function."""
        holder = self._module.__dict__
        while isinstance(last := holder.get("forward"), _Replacement) and last._hooks.ended:
            if last._before is None:
                del holder["forward"]
            else:
                holder["forward"] = last._before


@contextmanager
def probes_paused() -> Iterator[None]:
    """Models run without the functions attached to them inside the block, in this thread."""
    before = getattr(_pause, "on", False)
    _pause.on = True
    try:
        yield
    finally:
        _pause.on = before


def has_probes(model: nn.Module) -> bool:
    """Whether a probe is attached to the model right now."""
    return any(_probing_threads(module) for module in model.modules())


def _probing_threads(module: nn.Module) -> set[int]:
    """The threads that have probes attached to a module right now."""
    keys = (*module._forward_pre_hooks, *module._forward_hooks)
    return {_attached[key] for key in keys if key in _attached}


def _check_thread(model: nn.Module) -> None:
    """Raise if another thread has a probe attached to the model: each would run with the masks of both."""
    thread = threading.get_ident()
    in_other_thread = any(other != thread for other in tuple(_attached.values()))
    if in_other_thread and any(_probing_threads(module) - {thread} for module in model.modules()):
        raise UsageError(
            "Another thread has a mask or tap attached to this model; each thread would measure it with both. Give "
            "each thread a copy of the model."
        )


def _on_input(
    function: Callable[[nn.Module, Tensor], Tensor | None],
) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...] | None]:
    def hook(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        changed = function(module, arguments[0])
        return None if changed is None else (changed, *arguments[1:])

    return hook


def forget_compiled_code() -> None:
    """Make torch.compile compile the modules again.

    Compiled code does not check for hooks that were added or removed after compilation (by default there is no guard
    for them), so it would silently ignore a mask. After a reset the next call compiles again, hooks included.
    """
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None and not torch.compiler.is_compiling():
        dynamo.reset()  # takes next to no time if nothing was compiled


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which code of torch.compile calls as it is: one that notes what it sees cannot be compiled."""
    dynamo = sys.modules.get("torch._dynamo")
    return function if dynamo is None else dynamo.disable(function)


def in_backward() -> bool:
    """Whether the backward pass is running: a forward pass now is the second one of gradient checkpointing."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._current_graph_task_id() != -1


def is_encoder_decoder(model: nn.Module) -> bool:
    """Whether the config of a model says that it has an encoder and a decoder."""
    return bool(getattr(config_of(model), "is_encoder_decoder", False))


def config_of(model: nn.Module) -> Any:
    """The config of a model, also behind wrappers; None if there is none."""
    return getattr(configured_module(model), "config", None)


def configured_module(model: nn.Module) -> nn.Module:
    """The outermost part of a model that has the config of a Hugging Face model.

    It is the model itself, or what DistributedDataParallel, DataParallel, torch.compile or a module of the user's own
    is wrapped around. If no part has a config, it is the module behind torch.compile's wrapper.
    """
    model = original_module(model)
    configured = (part for part in model.modules() if hasattr(getattr(part, "config", None), "is_encoder_decoder"))
    return original_module(next(configured, model))


def original_module(model: nn.Module) -> nn.Module:
    """The module behind torch.compile's wrapper."""
    inner = getattr(model, "_orig_mod", model)
    return inner if isinstance(inner, nn.Module) else model
