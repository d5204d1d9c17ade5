"""Events: the layers of a run in order, and the cuts of the network that follow from them.

A cut is a set of tensors that every path from a prediction to the inputs crosses exactly once: the tensors that exist
at the end of a layer and are used after it. In an encoder-decoder these are the decoder's state, and the encoder's
output as used by later layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor


@dataclass(frozen=True)
class Event:
    """A tensor and the part of the run in which it appeared."""

    what: Literal["start", "look", "end"]  # a stack of layers starts; a layer attends to another stack; a layer ends
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
