"""Gates in the Trainer of Hugging Face: a callback that attaches them, adds their penalty and trains them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.probes.gated import HardConcreteGates
from headcount.probes.gates import attached, exact_mask
from headcount.sites.site import HeadNames
from headcount.training.penalty import Penalty


class GateCallback(TrainerCallback):
    """Train gates on heads with the Trainer of Hugging Face.

    The loss and the optimizer of the Trainer stay as they are. The callback adds the gradient of the gates' penalty
    before each step of the weights and steps the gates afterwards.

        callback = hc.GateCallback(keep=10)
        Trainer(model, ..., callbacks=[callback]).train()
        small = hc.remove(model, callback.mask())

    Args:
        keep: Number of gated heads to keep, in total or by kind. The strength of the penalty is adapted to reach it.
        penalty: Fixed strength of the penalty (lambda), instead of `keep`.
        kinds: Kinds of attention to gate. By default all.
        heads: Names of the heads to gate. By default all heads of these kinds.
        variant: Form of the gates: "default", "paper" or "voita2019-code".
        rate: Learning rate of the gates.
        seed: Random seed of the gates.

    Raises:
        UsageError: When training starts with several processes, fp16, `load_best_model_at_end` or a resumed state.
    """

    gates: HardConcreteGates

    def __init__(
        self,
        *,
        keep: int | dict[str, int] | None = None,
        penalty: float | None = None,
        kinds: Sequence[str] | None = None,
        heads: HeadNames | None = None,
        variant: str = "default",
        rate: float = 0.05,
        seed: int = 0,
    ) -> None:
        self._gating = {"kinds": kinds, "heads": heads, "variant": variant, "seed": seed}
        self._penalty: dict[str, Any] = {"keep": keep, "factor": penalty, "rate": rate, "seed": seed}
        self._block = ExitStack()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: nn.Module, **rest: Any
    ) -> None:
        if getattr(args, "world_size", 1) > 1 or getattr(args, "n_gpu", 1) > 1:
            raise UsageError("Gates in the Trainer need a single process and device; use headcount prune for several.")
        if getattr(args, "load_best_model_at_end", False):
            raise UsageError(
                "load_best_model_at_end would combine the weights of an earlier step with the gates of the last one: "
                "set it to False."
            )
        if state.global_step:
            raise UsageError(
                "A Trainer's checkpoint does not hold the gates: start again, or use headcount prune, which resumes."
            )
        if getattr(args, "fp16", False):
            raise UsageError("fp16 scales the loss, but not the gates' penalty: use bf16 or full precision.")
        self.close()  # gates of a training that did not end
        self.gates = HardConcreteGates(model, **self._gating)  # type: ignore[arg-type]
        self.partner = Penalty(self.gates, steps=max(1, state.max_steps), **self._penalty)
        self.partner.to(next(model.parameters()).device)
        self._block.enter_context(attached(model, self.gates, redraw=False))
        self._optimizer = torch.optim.Adam(self.partner.parameters(), lr=self.partner.rate, betas=(0.9, 0.98))

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        self.partner.before(state.global_step + 1)

    def on_pre_optimizer_step(self, *_: Any, **rest: Any) -> None:
        penalty = self.partner.penalty()
        if penalty.requires_grad:
            penalty.backward()

    def on_optimizer_step(self, args: TrainingArguments, state: TrainerState, *_: Any, **rest: Any) -> None:
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.partner.after(state.global_step + 1)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, *_: Any, logs: dict[str, Any] | None = None, **rest: Any
    ) -> None:
        if logs is not None and hasattr(self, "partner"):
            report = self.partner.report()
            report = {f"gates_{name}": report[name] for name in ("expected", "open", "settled")}
            logs |= report
            if state.log_history:  # the Trainer has copied the line there already
                state.log_history[-1] |= report

    def mask(self) -> HeadGrid:
        """The mask of heads to keep, after training.

        If the gates did not close exactly as many heads as `keep` asks for, the heads are ranked by their gates.
        """
        if not hasattr(self, "partner"):
            raise UsageError("The gates are not trained yet: call trainer.train() first.")
        return exact_mask(self.gates, self.partner.groups)[0]

    def on_train_end(self, *_: Any, **rest: Any) -> None:
        self.close()

    def close(self) -> None:
        """Remove the gates from the model. Call it if `train()` raised an exception."""
        self._block.close()
