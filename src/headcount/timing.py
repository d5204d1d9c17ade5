"""Timing of several functions in interleaved repeats, so that other load on the machine affects all of them.

Calls of an accelerator return as soon as work is queued: the clock is read when all of it is done.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from headcount.statistics import Interval, median_interval

Clock = Callable[[], float]
TimedCall = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each repeat, by name. Repeats with the same index ran one after the other."""

    seconds: Mapping[str, np.ndarray]  # name -> [repeats]

    def median(self, name: str) -> float:
        return float(np.median(self.seconds[name]))

    def ratio(self, above: str, below: str) -> Interval:
        """Median of the paired ratios, with its 95% interval."""
        return median_interval(self.seconds[above] / self.seconds[below])


def wait_for_devices() -> None:
    """Wait until all accelerators have done what was queued; on a machine without any, there is nothing to wait for."""
    if torch.accelerator.is_available():
        for device in range(torch.accelerator.device_count()):
            torch.accelerator.synchronize(device)


def timed(work: TimedCall, clock: Clock = time.perf_counter) -> float:
    """Seconds of one call, with the work that it queued and without that of earlier ones."""
    wait_for_devices()
    start = clock()
    work()
    wait_for_devices()
    return clock() - start


def interleave(
    work: Mapping[str, TimedCall],
    *,
    repeats: int = 20,
    warmup: int = 2,
    seed: int = 0,
    clock: Clock = time.perf_counter,
) -> Times:
    """Run every piece of work `repeats` times, in a new random order each round."""
    order, shuffle = list(work), random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(-warmup, repeats):
        shuffle.shuffle(order)
        for name in order:
            spent = timed(work[name], clock)
            if round_number >= 0:
                seconds[name].append(spent)
    return Times({name: np.array(values) for name, values in seconds.items()})
