"""Trace: one run of a model from which relevance can be propagated back from any prediction to every head.

Shapes: B batch, T tokens, H heads of a site, D head size, C classes or vocabulary, P parts of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import ACT2CLS
from transformers.pytorch_utils import Conv1D

from headcount.errors import ModelError, UnknownName, UsageError
from headcount.hooks import Hooks, original_module
from headcount.probes.relevance.account import Account
from headcount.probes.relevance.events import Cut, Event, cuts
from headcount.probes.relevance.propagation import Propagation
from headcount.probes.relevance.rules.rule import Bias, Rule, members
from headcount.probes.replay import layer_of
from headcount.sites.locate import locate
from headcount.sites.running import attention_backend
from headcount.sites.site import Site, SiteKey

_ACTIVATIONS = (
    *{activation[0] if isinstance(activation, tuple) else activation for activation in ACT2CLS.values()},
    nn.GELU, nn.ReLU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.LeakyReLU,
)  # fmt: skip
_ACTIVATION_NAMES = ("BloomGelu",)  # implemented in the file of its model
_KNOWN_LEAVES = (nn.Linear, Conv1D, nn.LayerNorm, nn.Embedding, nn.Dropout, nn.Identity, *_ACTIVATIONS)
_NORM_NAMES = ("RMSNorm", "LayerNorm")  # name endings; norms that consist of known functions


@dataclass(frozen=True)
class Relevance:
    """Relevance of one prediction for each example of a batch."""

    heads: dict[SiteKey, Tensor]  # [B, H]
    cuts: Tensor  # [cuts, B]: relevance that crosses each cut
    constants: Tensor  # [cuts, B]: of biases and other constants between the prediction and each cut


class Trace:
    """The graph of relevance of a run, from the predictions down to the inputs of the first layers."""

    def __init__(self, rule: Rule, propagation: Propagation) -> None:
        self._rule = rule
        self._propagation = propagation
        self.events: list[Event] = []
        self.contexts: list[tuple[Site, Tensor]] = []
        self.head: tuple[nn.Linear, Tensor, Tensor] | None = None  # last layer, its input, its output
        self._checked: Tensor | None = None

    @property
    def cuts(self) -> list[Cut]:
        return cuts(self.events)

    def predictions(self, logits_BTC: Tensor, position: int, classes_B: Tensor) -> Tensor:
        """[B]: the logits of these classes at one position, as input of `relevance`.

        If the logits are the output of the last linear layer, only its rows for these classes are computed.
        """
        if self._checked is not logits_BTC:
            self._propagation.check(logits_BTC)
            self._checked = logits_BTC
        if self._rule.slopes and self.head is not None and self.head[2] is logits_BTC:
            layer, states_BTD, _ = self.head
            found_B = (states_BTD[:, position] * layer.weight.detach()[classes_B]).sum(-1)
            if layer.bias is None:
                return found_B
            with self._propagation:
                return found_B + layer.bias.detach()[classes_B]
        return logits_BTC[:, position].gather(-1, classes_B[:, None])[:, 0]

    def relevance(self, logits_B: Tensor, counted_B: Tensor) -> Relevance:
        """Propagate the relevance of these logits; examples that are not counted (0) get none."""
        account, found_cuts = self._rule.account, self.cuts
        crossing = {id(tensor): tensor for cut in found_cuts for tensor in cut.tensors}
        taking = [*(account.scales if self._rule.slopes else []), *account.weights]  # with their part
        tensors = [*(context for _, context in self.contexts), *crossing.values(), *(tensor for _, tensor in taking)]
        start_B = counted_B.to(logits_B.dtype)
        start_B = start_B if self._rule.slopes else start_B * logits_B.detach()
        slopes = torch.autograd.grad(logits_B, tensors, start_B, retain_graph=True, allow_unused=True)
        backs = iter(zip(tensors, slopes, strict=True))
        heads: dict[SiteKey, Tensor] = {}
        for (site, _), back in zip(self.contexts, backs, strict=False):
            heads[site.key] = heads.get(site.key, 0) + self._by_head(site, *back)
        across = {key: self._by_example(*back) for key, back in zip(crossing, backs, strict=False)}
        absorbed = [(part, self._by_example(*back)) for (part, _), back in zip(taking, backs, strict=True)]
        none_B = torch.zeros_like(start_B)
        return Relevance(
            heads,
            torch.stack([sum((across[id(tensor)] for tensor in cut.tensors), none_B) for cut in found_cuts]),
            torch.stack([sum((value for part, value in absorbed if part > cut.part), none_B) for cut in found_cuts]),
        )

    def _by_head(self, site: Site, context: Tensor, slope: Tensor | None) -> Tensor:
        """[B, H]: summed over positions and neurons."""
        if slope is None:
            return context.new_zeros(len(context), site.num_heads)
        relevance = context.detach() * slope if self._rule.slopes else slope
        return relevance.reshape(len(context), -1, site.num_heads, site.head_dim).sum((1, 3))

    def _by_example(self, tensor: Tensor, slope: Tensor | None) -> Tensor:
        """[B]: summed over everything else."""
        rows = self._rule.account.rows
        if slope is None:
            return tensor.new_zeros(rows)
        if not self._rule.slopes:
            return slope.reshape(rows, -1).sum(1)
        return torch.linalg.vecdot(tensor.detach().reshape(rows, -1), slope.reshape(rows, -1))


@contextmanager
def traced(model: nn.Module, *, rule: str = "ding", bias: Bias | None = None) -> Iterator[Trace]:
    """Run the model once inside the block, in eval mode and with gradients; the Trace stays usable after it.

    rule: name of a file of `rules/`. bias: "absorb" (default) or "redistribute", for rules that allow both. The model
        is not patched: hooks observe it, and torch functions are intercepted only inside the block.
    """
    plain = original_module(model)
    account = Account()
    method = _rule(rule, bias, account)
    propagation = Propagation(method)
    trace = Trace(method, propagation)
    if method.backend == "sdpa" and not _computes_in_one(plain):
        raise ModelError(
            f"Rule {rule} needs attention in one function, scaled_dot_product_attention; {type(plain).__name__} "
            "cannot be computed that way. Rule ding can follow relevance through it."
        )
    with ExitStack() as stack:
        stack.enter_context(attention_backend(plain, method.backend))
        hooks = stack.enter_context(Hooks(plain))
        _Watcher(plain, trace, method, hooks).attach()
        stack.enter_context(propagation)
        yield trace


def _computes_in_one(model: nn.Module) -> bool:
    softcap = getattr(getattr(model, "config", None), "attn_logit_softcapping", None)
    return bool(getattr(model, "_supports_sdpa", False)) and softcap is None


def _rule(name: str, bias: Bias | None, account: Account) -> Rule:
    kind = members[name]
    if not kind.biases:
        if bias is not None:
            raise UsageError(f"Rule {kind.name} has its own treatment of biases; leave out bias={bias!r}.")
        return kind(account)
    if bias is not None and bias not in kind.biases:
        raise UnknownName("reading of a bias", bias, kind.biases)
    return kind(account, bias or kind.biases[0])


class _Watcher:
    """Attaches hooks that record the events of a run, and passes activation modules to the rule as a whole."""

    def __init__(self, model: nn.Module, trace: Trace, rule: Rule, hooks: Hooks) -> None:
        self._model, self._trace, self._rule, self._hooks = model, trace, rule, hooks
        self._ended: Counter[str] = Counter()

    def attach(self) -> None:
        sites = [site for site in locate(self._model) if site.num_heads]
        for site in sites:
            if not layer_of(site):
                raise ModelError(
                    f"{site.name} is not in a numbered layer, so conservation of relevance cannot be checked."
                )
            self._hooks.see_input(site.entry, self._context(site))
            if site.kind == "cross":
                self._hooks.change_argument(site.module, site.attention.keys, self._look(site))
        layers = {layer_of(site): site for site in reversed(list(locate(self._model)))}
        for path, site in layers.items():
            layer = self._model.get_submodule(path)
            self._hooks.change_input(layer, self._start(path, site))
            self._hooks.change_output(layer, self._end(path, site))
        self._watch_leaves()
        head = getattr(self._model, "get_output_embeddings", lambda: None)()
        if isinstance(head, nn.Linear):
            self._watch_head(head)

    def _start(self, path: str, site: Site) -> Callable[[Tensor], Tensor | None]:
        def function(states: Tensor) -> Tensor | None:
            if states.requires_grad:
                return None
            if any(event.what == "end" and event.stack == _stack(path) for event in self._trace.events):
                raise ModelError(
                    f"The input of {path} is detached from the layers before it: no relevance reaches them."
                )
            leaf = states.detach().requires_grad_()
            self._rule.account.open(leaf)
            self._note("start", path, site, leaf)
            return leaf

        return function

    def _end(self, path: str, site: Site) -> Callable[[Any], None]:
        def function(output: Any) -> None:
            self._note("end", path, site, output[0] if isinstance(output, tuple | list) else output)
            self._rule.account.advance()

        return function

    def _look(self, site: Site) -> Callable[[Any], Any]:
        def function(states: Any) -> Any:
            if not isinstance(states, Tensor):
                return states
            seen = states.view_as(states) if states.requires_grad else states.detach().requires_grad_()
            self._note("look" if states.requires_grad else "start", layer_of(site), site, seen)
            return seen

        return function

    def _note(self, what: Any, path: str, site: Site, tensor: Tensor) -> None:
        name = site.name if site.kind != "cross" else f"decoder.{site.layer}"
        if what == "end":
            self._ended[name] += 1
            name = f"{name} again ({self._ended[name]})" if self._ended[name] > 1 else name
        self._trace.events.append(Event(what, _stack(path), name, self._rule.account.part, tensor))

    def _context(self, site: Site) -> Callable[[Tensor], None]:
        return lambda context: self._trace.contexts.append((site, context))

    def _watch_leaves(self) -> None:
        for path, module in self._model.named_modules():
            name = type(module).__name__
            if isinstance(module, _ACTIVATIONS) or name in _ACTIVATION_NAMES:
                self._hooks.replace(module, self._activation(module.forward))
            elif (
                not any(module.children()) and not isinstance(module, _KNOWN_LEAVES) and not name.endswith(_NORM_NAMES)
            ):
                self._hooks.change_output(module, self._refuse(path, name))

    def _activation(self, forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def quiet(x: Tensor) -> Tensor:
            with torch.no_grad():  # its functions must not be treated one by one
                return forward(x)

        return lambda x: self._rule.activation(x, quiet) if x.requires_grad else forward(x)

    def _refuse(self, path: str, name: str) -> Callable[[Any], None]:
        def function(output: Any) -> None:
            outputs = output if isinstance(output, tuple | list) else (output,)
            if any(isinstance(value, Tensor) and value.requires_grad for value in outputs):
                raise ModelError(f"Relevance cannot be traced through {path}: no rule supports a {name} module.")

        return function

    def _watch_head(self, head: nn.Linear) -> None:
        inputs: list[Tensor] = []
        self._hooks.see_input(head, inputs.append)

        def given(logits: Tensor) -> None:
            self._trace.head = (head, inputs[-1], logits)

        self._hooks.change_output(head, given)


def _stack(path: str) -> str:
    """The stack that a layer belongs to."""
    return path.rpartition(".")[0]
