"""Events: what is seen of a run, layer by layer, and the cuts of the network it gives.

A cut is a set of tensors that every path from a prediction to the inputs passes exactly once: all that was known when a
layer had ended and was used after it. Beside an encoder that is the decoder's state, and the encoder's output as later
layers use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor


@dataclass(frozen=True)
class Event:
    """A tensor, and when it was there: in which part of the run."""

    what: Literal["start", "look", "end"]  # a stack of layers starts; a layer looks at another stack; a layer ends
    stack: str
    name: str
    part: int
    tensor: Tensor


@dataclass(frozen=True)
class Cut:
    """The tensors of a cut; constants of parts after `part` are on the prediction's side of it."""

    name: str
    part: int
    tensors: tuple[Tensor, ...]


def cuts(events: list[Event]) -> list[Cut]:
    """The cut at the inputs of the first layers, and one at the end of every layer."""
    starts = tuple(event.tensor for event in events if event.what == "start")
    states = [Cut("input", -1, starts)]
    for index, event in enumerate(events):
        if event.what == "end":
            later = [
                other.tensor
                for other in events[index + 1 :]
                if other.what == "start" or (other.what == "look" and other.stack == event.stack)
            ]
            states.append(Cut(event.name, event.part, (event.tensor, *later)))
    return states
