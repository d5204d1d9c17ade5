"""Partner: parameters trained along with a model at their own rate, such as gates. The contract with the loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from torch import Tensor, nn


class Partner(Protocol):
    """A module with parameters or buffers of its own, told of every step; it is part of a run's state."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]: ...

    def leaves(self) -> list[Tensor]:
        """Whatever receives gradients: the parameters, and more if wanted."""

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number, from 1."""

    def before(self, step: int) -> None:
        """The step is about to be taken; the same on all processes."""

    def penalty(self) -> Tensor:
        """Added to the loss of the step."""

    def after(self, step: int) -> None:
        """The step has been taken."""

    def report(self) -> dict[str, Any]:
        """What goes into the log beside the loss; plain JSON."""
