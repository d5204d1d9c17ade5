"""Partner: parameters trained along with a model at their own rate, such as gates. The interface with the loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from torch import Tensor, nn


class Partner(Protocol):
    """A module with its own parameters or buffers that is called at every step and saved with the run."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]: ...

    def leaves(self) -> list[Tensor]:
        """Tensors that receive gradients: the parameters, and possibly others."""

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number, from 1."""

    def before(self, step: int) -> None:
        """Called before each step, on all processes."""

    def penalty(self) -> Tensor:
        """The penalty, added to the loss of the step."""

    def after(self, step: int) -> None:
        """Called after each step."""

    def report(self) -> dict[str, Any]:
        """Values for the log besides the loss; plain JSON."""
